#include "launcher/job/state/comeback.h"

static uint64_t next_wait_s(const struct dt_comeback *c, uint64_t first_s)
{
    uint64_t longest_s = first_s > DT_COMEBACK_MAX_S ? first_s : DT_COMEBACK_MAX_S;

    if (!c->wait_s)
        return first_s;
    return c->wait_s > longest_s / 2 ? longest_s : 2 * c->wait_s;
}

void dt_comeback_wait(struct dt_comeback *c, uint64_t first_s, uint64_t now_ns)
{
    if (c->due_ns)
        return;
    c->wait_s = next_wait_s(c, first_s);
    c->due_ns = now_ns + c->wait_s * UINT64_C(1000000000);
}

void dt_comeback_end(struct dt_comeback *c)
{
    c->due_ns = 0;
}

void dt_comeback_put_off(struct dt_comeback *c, uint64_t now_ns)
{
    c->due_ns = now_ns;
}
