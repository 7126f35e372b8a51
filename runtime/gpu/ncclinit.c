#include "runtime/gpu/ncclinit.h"

#include "runtime/base/clock.h"
#include "runtime/comm/collective.h"
#include "runtime/gpu/device/errand.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/ncclerror.h"
#include "runtime/gpu/ncclguard.h"
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
    /* for a split */
    ncclComm_t parent;
    struct dt_ncclguard *guard; /* the parent's */
    int color;
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

/* Likewise. The child gets its parent's configuration. */
static void split_comm(void *arg)
{
    struct init *init = arg;
    struct dt_cuda_scope scope;

    init->result = ncclInternalError;
    if (dt_ncclguard_enter(init->guard)) {
        if (!dt_cuda_enter(&scope, init->context)) {
            init->result =
                dt_nccl()->ncclCommSplit(init->parent, init->color, init->rank, &init->comm, NULL);
            dt_cuda_leave(&scope);
        }
        dt_ncclguard_leave(init->guard);
    }
    dt_ncclguard_drop(init->guard);
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

static dt_result_t report_init_timeout(struct dt_comm *c, const char *function, unsigned seconds)
{
    dt_fail(DT_ERR_TIMEOUT,
            "%s: NCCL has not connected the %d ranks in %u s (DTRUN_NCCL_INIT_TIMEOUT); "
            "NCCL_DEBUG=INFO shows where it waits, NCCL_SOCKET_IFNAME names the network to use%s",
            function, c->gpu->nccl.size, seconds, dt_nccl_way_around(function));
    dt_coll_error(&c->coll_error, DT_ERR_TIMEOUT, (uint32_t)c->world->rank);
    c->coll_error.why = dt_last_error();
    return DT_ERR_TIMEOUT;
}

unsigned dt_ncclinit_seconds(const struct dt_comm *c)
{
    unsigned chosen = c->world->settings.nccl_init_s;

    return chosen ? chosen : INIT_S + (unsigned)c->size / INIT_RANKS_A_S;
}

/* NCCL's communicator of c, or one that is split from it. */
struct start {
    struct dt_errand *errand;
    const char *function;
    struct dt_comm *made; /* the communicator that it is for; NULL: this rank gets none */
};

/* A split blocks until it is done, so its result does not depend on c's state. */
static ncclResult_t poll_start(struct dt_comm *c, const struct start *s)
{
    const struct init *init = dt_errand_result(s->errand);

    if (!init)
        return ncclInProgress;
    if (s->made)
        s->made->gpu->nccl.comm = init->comm;
    return dt_nccl_failed(init->result) || s->made != c ? init->result : dt_ncclcomm_state(c);
}

static dt_result_t await_start(struct dt_comm *c, void *arg)
{
    const struct start *s = arg;
    unsigned seconds = dt_ncclinit_seconds(c);
    uint64_t until = dt_clock_ns() + (uint64_t)seconds * 1000000000;

    for (unsigned turn = 0;; turn++) {
        ncclResult_t state = poll_start(c, s);
        dt_result_t r;

        if (state == ncclSuccess)
            return DT_OK;
        if (state != ncclInProgress)
            return dt_ncclerror(c, s->function, state);
        r = dt_comm_check_stop(c, &c->coll_error);
        if (r != DT_OK)
            return r;
        if (dt_clock_ns() > until)
            return report_init_timeout(c, s->function, seconds);
        dt_gpu_pause(turn);
    }
}

/* errand NULL: memory or threads have run out. */
static dt_result_t finish_start(struct dt_comm *c, struct start *s)
{
    uint32_t limit_ms = c->limit_ms;
    dt_result_t r;

    if (!s->errand)
        return dt_comm_fail_no_memory(c);
    c->limit_ms = DT_HOSTSHM_NO_LIMIT; /* connecting has a limit of its own */
    r = dt_comm_aside(c, DT_CALL_GPU_START, await_start, s);
    c->limit_ms = limit_ms;
    if (r != DT_OK && dt_errand_abandon(s->errand))
        return r;
    poll_start(c, s); /* it may have ended just now */
    dt_errand_end(s->errand);
    return r;
}

/* ---- connecting ---- */

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
    CUresult result = dt_cuda_make_stream(&n->stream, function);

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
    struct start s = { .function = "ncclCommInitRankConfig", .made = c };
    dt_result_t r = share_unique_id(c, &init.id);

    if (r != DT_OK || n->rank < 0)
        return r;
    s.errand = dt_errand_start(init_comm, abort_abandoned_init, &init, sizeof init);
    return finish_start(c, &s);
}

/* A split leaves the stream to the first call. */
dt_result_t dt_ncclinit_connect(struct dt_comm *c, const struct dt_gpu_order *order, int rank,
                                int size)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    const char *function = NULL;
    CUresult result;

    if (n->stream)
        return DT_OK;
    if (!n->comm && !dt_ncclcomm_begin(c, order, rank, size))
        return dt_comm_fail_no_memory(c);
    result = rank < 0 ? CUDA_SUCCESS : make_stream(n, &function);
    if (result)
        return dt_gpu_fail(c, function, result);
    return n->comm ? DT_OK : connect_ranks(c);
}

dt_result_t dt_ncclinit_open(struct dt_comm *c, const struct dt_gpu_order *order)
{
    const struct dt_ncclcomm *n = &c->gpu->nccl;
    struct dt_cuda_scope scope;
    CUresult result =
        dt_gpu_enter_made(&scope, n->comm ? n->context : NULL, n->life, order->context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    r = dt_ncclinit_connect(c, order, c->rank, c->size);
    dt_cuda_leave(&scope);
    if (r == DT_OK)
        dt_direct_open(c, dt_ncclcomm_end_stuck);
    else
        dt_ncclcomm_abort(c);
    return r;
}

/* ---- splitting ---- */

static bool lives(const struct dt_ncclcomm *n)
{
    struct dt_cuda_scope scope;
    bool alive = n->comm && dt_gpu_enter_life(&scope, n->context, n->life);

    if (alive)
        dt_cuda_leave(&scope);
    return alive;
}

/* Whether ncclCommSplit would wait only for the other ranks. Earlier calls on c are over when c is
 * split. */
static bool is_ready_to_split(struct dt_comm *c)
{
    return c->world->settings.splits_nccl && dt_nccl()->splits && lives(&c->gpu->nccl) &&
           dt_ncclcomm_state(c) == ncclSuccess;
}

static dt_result_t split_ranks(struct dt_comm *parent, struct dt_comm *child, int color)
{
    const struct dt_ncclcomm *n = &parent->gpu->nccl;
    const struct dt_gpu_order order = { .context = n->context, .device = n->device };
    struct init init = { .context = n->context,
                         .parent = n->comm,
                         .guard = n->guard,
                         .color = child ? color : NCCL_SPLIT_NOCOLOR,
                         .rank = child ? child->rank : 0 };
    struct start s = { .function = "ncclCommSplit", .made = child };

    if (child && !dt_ncclcomm_begin(child, &order, child->rank, child->size))
        return dt_comm_fail_no_memory(parent);
    dt_ncclguard_hold(n->guard);
    s.errand = dt_errand_start(split_comm, abort_abandoned_init, &init, sizeof init);
    if (!s.errand)
        dt_ncclguard_drop(n->guard);
    return finish_start(parent, &s);
}

static dt_result_t split_in_context(struct dt_comm *parent, struct dt_comm *child, int color)
{
    const struct dt_ncclcomm *n = &parent->gpu->nccl;
    struct dt_cuda_scope scope;
    CUresult result = dt_gpu_enter_made(&scope, n->context, n->life, NULL);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(parent, scope.failed, result);
    r = split_ranks(parent, child, color);
    dt_cuda_leave(&scope);
    return r;
}

/* When NCCL allocates memory, the driver might make it wait for calls of other communicators. So
 * none may be at work, and until the split is over none begins. */
dt_result_t dt_ncclinit_split(struct dt_comm *parent, struct dt_comm *child, int color)
{
    bool idle = dt_gpu_provision_begin();
    int64_t all_ready = idle && is_ready_to_split(parent);
    dt_result_t r = dt_comm_all_reduce_words(parent, DT_CALL_SPLIT, &all_ready, 1, DT_MIN);

    if (r == DT_OK && all_ready)
        r = split_in_context(parent, child, color);
    if (idle)
        dt_gpu_provision_end();
    return r;
}

bool dt_ncclinit_fits(const struct dt_comm *c, const struct dt_gpu_order *order)
{
    const struct dt_ncclcomm *n = &c->gpu->nccl;

    return lives(n) && n->context == order->context;
}
