#include "runtime/gpu/ncclinit.h"

#include "runtime/base/clock.h"
#include "runtime/comm/collective.h"
#include "runtime/gpu/device/errand.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/ncclerror.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"

enum {
    INIT_S = 120,       /* the limit for connecting */
    INIT_RANKS_A_S = 8, /* every so many ranks add a second to it */
};

struct init {
    CUcontext context;
    ncclUniqueId id;
    int rank;
    int size;
    ncclComm_t comm;
    ncclResult_t result;
};

/* Runs in a thread of its own, which may wait in NCCL for ever. */
static void init_comm(void *arg)
{
    struct dt_nccl_config config = DT_NCCL_CONFIG_INITIALIZER;
    struct init *init = arg;
    struct dt_cuda_scope scope;

    init->result = ncclUnhandledCudaError;
    if (dt_cuda_enter(&scope, init->context))
        return;
    config.blocking = dt_nccl()->blocks;
    init->result = dt_nccl()->ncclCommInitRankConfig(&init->comm, init->size, init->id, init->rank,
                                                     (ncclConfig_t *)&config);
    dt_cuda_leave(&scope);
}

/* Aborts a communicator that NCCL has made after the errand was abandoned. */
static void abort_abandoned_init(void *arg)
{
    const struct init *init = arg;
    struct dt_cuda_scope scope;

    if (!init->comm || dt_cuda_enter(&scope, init->context))
        return;
    dt_nccl()->ncclCommAbort(init->comm);
    dt_cuda_leave(&scope);
}

static dt_result_t report_init_timeout(struct dt_comm *c, unsigned seconds)
{
    dt_fail(DT_ERR_TIMEOUT,
            "NCCL has not connected the %d ranks in %u s (DTRUN_NCCL_INIT_TIMEOUT); "
            "NCCL_DEBUG=INFO shows where it waits, NCCL_SOCKET_IFNAME names the network to use",
            c->gpu->nccl.size, seconds);
    dt_coll_error(&c->coll_error, DT_ERR_TIMEOUT, (uint32_t)c->world->rank);
    c->coll_error.why = dt_last_error();
    return DT_ERR_TIMEOUT;
}

unsigned dt_ncclinit_seconds(const struct dt_comm *c)
{
    unsigned chosen = c->world->settings.nccl_init_s;

    return chosen ? chosen : INIT_S + (unsigned)c->size / INIT_RANKS_A_S;
}

static ncclResult_t poll_init(struct dt_comm *c, struct dt_errand *errand)
{
    const struct init *init = dt_errand_result(errand);

    if (!init)
        return ncclInProgress;
    c->gpu->nccl.comm = init->comm;
    if (dt_nccl_failed(init->result))
        return init->result;
    return dt_ncclcomm_state(c);
}

static dt_result_t await_init(struct dt_comm *c, void *errand)
{
    unsigned seconds = dt_ncclinit_seconds(c);
    uint64_t until = dt_clock_ns() + (uint64_t)seconds * 1000000000;

    for (unsigned turn = 0;; turn++) {
        ncclResult_t state = poll_init(c, errand);
        dt_result_t r;

        if (state == ncclSuccess)
            return DT_OK;
        if (state != ncclInProgress)
            return dt_ncclerror(c, "ncclCommInitRankConfig", state);
        r = dt_comm_check_stop(c, &c->coll_error);
        if (r != DT_OK)
            return r;
        if (dt_clock_ns() > until)
            return report_init_timeout(c, seconds);
        dt_gpu_pause(turn);
    }
}

static dt_result_t make_unique_id(struct dt_comm *c, void *id)
{
    ncclResult_t made = dt_nccl()->ncclGetUniqueId(id);

    return made ? dt_ncclerror(c, "ncclGetUniqueId", made) : DT_OK;
}

/* If rank 0 cannot make an id, that stops c, which ends the wait of the others. They may lack NCCL.
 */
static dt_result_t share_unique_id(struct dt_comm *c, ncclUniqueId *id)
{
    dt_result_t r = DT_OK;

    if (c->rank == 0)
        r = dt_comm_aside(c, DT_CALL_GPU_START, make_unique_id, id);
    return r == DT_OK ? dt_comm_broadcast_bytes(c, DT_CALL_GPU_CHOICE, id, sizeof *id, 0) : r;
}

/* Returns an error with the function that failed in *function. */
static CUresult make_stream(struct dt_ncclcomm *n, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = dt_cuda_make_stream(&n->stream);

    *function = "cuStreamCreate";
    if (result)
        return result;
    *function = "cuEventCreate";
    result = cuda->cuEventCreate(&n->begun, CU_EVENT_DISABLE_TIMING);
    return result ? result : cuda->cuEventCreate(&n->done, CU_EVENT_DISABLE_TIMING);
}

static dt_result_t connect_ranks(struct dt_comm *c)
{
    const struct dt_ncclcomm *n = &c->gpu->nccl;
    struct init init = { .context = n->context, .rank = n->rank, .size = n->size };
    uint32_t limit_ms = c->limit_ms;
    struct dt_errand *errand;
    dt_result_t r = share_unique_id(c, &init.id);

    if (r != DT_OK || n->rank < 0)
        return r;
    errand = dt_errand_start(init_comm, abort_abandoned_init, &init, sizeof init);
    if (!errand)
        return dt_comm_fail_no_memory(c);
    c->limit_ms = DT_HOSTSHM_NO_LIMIT; /* connecting has a limit of its own */
    r = dt_comm_aside(c, DT_CALL_GPU_START, await_init, errand);
    c->limit_ms = limit_ms;
    if (r != DT_OK && dt_errand_abandon(errand))
        return r;
    poll_init(c, errand); /* it may have ended just now */
    dt_errand_end(errand);
    return r;
}

dt_result_t dt_ncclinit_connect(struct dt_comm *c, const struct dt_gpu_order *order, int rank,
                                int size)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    const char *function = NULL;
    CUresult result;

    if (n->comm)
        return DT_OK;
    if (!dt_ncclcomm_begin(c, order, rank, size))
        return dt_comm_fail_no_memory(c);
    result = rank < 0 ? CUDA_SUCCESS : make_stream(n, &function);
    return result ? dt_gpu_fail(c, function, result) : connect_ranks(c);
}

dt_result_t dt_ncclinit_open(struct dt_comm *c, const struct dt_gpu_order *order)
{
    const struct dt_ncclcomm *n = &c->gpu->nccl;
    struct dt_cuda_scope scope;
    CUresult result =
        dt_gpu_enter_made(&scope, n->comm ? n->context : NULL, n->life, order->context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, "cuCtxPushCurrent", result);
    r = dt_ncclinit_connect(c, order, c->rank, c->size);
    dt_cuda_leave(&scope);
    if (r == DT_OK)
        dt_direct_open(c, dt_ncclcomm_end_stuck);
    else
        dt_ncclcomm_abort(c);
    return r;
}
