#include "tests/gpu/raw.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void nccl(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return;
    printf("%s: %s (%s)\n", what, raw_api()->ncclGetErrorString(result),
           raw_api()->ncclGetLastError(NULL));
    fflush(stdout);
    exit(4);
}

#define NCCL(call) nccl(raw_api()->call, #call)

const struct dt_ncclapi *raw_api(void)
{
    const char *why;
    const struct dt_ncclapi *api = dt_ncclapi(&why);

    if (!api) {
        printf("%s\n", why);
        exit(5);
    }
    return api;
}

static void await_nccl(const struct raw *raw)
{
    ncclResult_t state = raw->blocking ? ncclSuccess : ncclInProgress;

    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(raw->comm, &state));
        if (state == ncclInProgress)
            sched_yield(); /* lets the thread run in which NCCL launches */
    }
    nccl(state, "ncclCommGetAsyncError");
}

void raw_open(struct raw *raw, bool blocking)
{
    struct dt_nccl_config config = DT_NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    if (dt_rank() == 0)
        NCCL(ncclGetUniqueId(&id));
    need(dt_broadcast(DT_WORLD, &id, sizeof id, DT_U8, 0));
    DRIVE(cuStreamCreate(&raw->stream, CU_STREAM_NON_BLOCKING));
    raw->blocking = blocking;
    config.blocking = blocking;
    NCCL(ncclCommInitRankConfig(&raw->comm, dt_size(), id, dt_rank(), (ncclConfig_t *)&config));
    await_nccl(raw);
}

void raw_all_reduce(const struct raw *raw, void *buf, size_t count)
{
    NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, raw->comm, raw->stream));
    await_nccl(raw);
}

void raw_wait(const struct raw *raw)
{
    DRIVE(cuStreamSynchronize(raw->stream));
}

void raw_close(struct raw *raw)
{
    NCCL(ncclCommDestroy(raw->comm));
    DRIVE(cuStreamDestroy_v2(raw->stream));
}
