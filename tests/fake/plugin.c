/* A backend for tests, in the place of libdtrun-nccl.so.0. Device memory is ordinary memory here
 * and the host's broadcast carries the data, so sums come out right and everything waits as it
 * really would. FAKE_PLUGIN=no-device-on-rank-1 makes that rank refuse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"

static const struct dt_device_host *dti_host;

static dt_result_t probe(const struct dt_device_host *host, const void *ptr, int *device)
{
    const char *wish = getenv("FAKE_PLUGIN");

    (void)ptr;
    if (wish && strcmp(wish, "no-device-on-rank-1") == 0 && host->rank == 1)
        return host->fail(host->ctx, DT_ERR_CUDA, "rank 1: no device here");
    *device = 0;
    return DT_OK;
}

static dt_result_t open_all(const struct dt_device_host *host, int device, void **state)
{
    (void)device;
    dti_host = host;
    *state = &dti_host;
    return DT_OK;
}

/* Sums of f32 alone, in rank order. */
static dt_result_t all_reduce(void *state, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, dt_op_t op)
{
    float *sum = calloc(count, sizeof *sum), *part = malloc(count * sizeof *part);
    dt_result_t result =
        dtype == DT_F32 && op == DT_SUM && sum && part ? DT_OK : DT_ERR_UNSUPPORTED;

    (void)state;
    for (int root = 0; root < dti_host->size && result == DT_OK; root++) {
        memcpy(part, in, count * sizeof *part);
        result = dti_host->broadcast(dti_host->ctx, part, count * sizeof *part, root);
        for (size_t i = 0; i < count; i++)
            sum[i] += part[i];
    }
    if (result == DT_OK)
        memcpy(out, sum, count * sizeof *sum);
    free(sum);
    free(part);
    return result;
}

static dt_result_t broadcast(void *state, void *buf, size_t count, dt_dtype_t dtype, int root)
{
    size_t width = dtype == DT_I64 || dtype == DT_F64 ? 8 : 4;

    (void)state;
    return dti_host->broadcast(dti_host->ctx, buf, count * width, root);
}

static dt_result_t barrier(void *state)
{
    int32_t nothing = 0;

    (void)state;
    return dti_host->min(dti_host->ctx, &nothing);
}

static void close_all(void *state)
{
    if (state)
        fprintf(stderr, "fake plugin: closed\n");
}

static const struct dt_device_ops dti_ops = {
    .abi = DT_DEVICE_ABI,
    .probe = probe,
    .open = open_all,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .barrier = barrier,
    .close = close_all,
};

DT_API const struct dt_device_ops *dti_device_plugin(void);

const struct dt_device_ops *dti_device_plugin(void)
{
    return &dti_ops;
}
