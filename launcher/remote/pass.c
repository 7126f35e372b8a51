#include "launcher/remote/pass.h"

void dt_pass_data(void *arg, const void *data, size_t n)
{
    const struct dt_pass *p = arg;

    p->events.data(p->arg, data, n);
}

void dt_pass_noise(void *arg, const void *data, size_t n)
{
    const struct dt_pass *p = arg;

    p->events.noise(p->arg, data, n);
}

void dt_pass_drained(void *arg)
{
    const struct dt_pass *p = arg;

    p->events.drained(p->arg);
}
