#include "runtime/devicehost.h"

#include "runtime/collective.h"

static dt_result_t host_broadcast(void *ctx, void *buf, size_t bytes, int root)
{
    struct dt_comm *c = ctx;
    size_t words = bytes / 4;

    if (bytes % 4)
        return dt_fail(DT_ERR_INTERNAL, "a device backend's message is not in whole words");
    return dt_comm_broadcast(c, buf, words, DT_I32, root);
}

static dt_result_t host_min(void *ctx, int32_t *value)
{
    return dt_comm_all_reduce(ctx, value, value, 1, DT_I32, DT_MIN);
}

static bool host_aborted(void *ctx, int *culprit)
{
    struct dt_comm *c = ctx;
    uint32_t rank = 0;
    bool stopped = dt_hostshm_stopped(&c->shm.map, &rank) != 0;

    *culprit = stopped && rank <= INT32_MAX ? (int)rank : -1;
    return stopped;
}

static dt_result_t host_fail(void *ctx, dt_result_t result, const char *text)
{
    return dt_comm_fail(ctx, dt_fail(result, "%s", text));
}

void dt_devicehost_init(struct dt_comm *c)
{
    c->device_host = (struct dt_device_host){ .rank = c->rank,
                                              .size = c->size,
                                              .ctx = c,
                                              .broadcast = host_broadcast,
                                              .min = host_min,
                                              .aborted = host_aborted,
                                              .fail = host_fail };
}
