#include "launcher/agent/generationstate.h"

void dt_generation_log(struct dt_generation *g, const char *text)
{
    struct dt_msg_log m = { .text = (char *)(uintptr_t)text };

    dt_channel_send(g->host->channel, DT_MSG_LOG, &m);
}
