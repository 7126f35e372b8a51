#include "launcher/agent/generationstate.h"

#include <stdarg.h>
#include <stdlib.h>

#include "launcher/base/mem.h"

void dt_generation_on_log(void *arg, const char *text)
{
    const struct dt_generation *g = arg;
    const struct dt_msg_log m = { .text = (char *)(uintptr_t)text };

    dt_channel_send(g->host->channel, DT_MSG_LOG, &m);
}

void dt_generation_say(struct dt_generation *g, const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = dt_xvasprintf(fmt, ap);
    va_end(ap);
    dt_generation_on_log(g, text);
    free(text);
}
