#include "runtime/gpu/nccl.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/gpu.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/collective.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/errand.h"
#include "runtime/gpu/launchorder.h"
#include "runtime/gpu/ncclcalls.h"
#include "runtime/gpu/ncclguard.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

enum {
    INIT_S = 120,       /* the limit for connecting, and */
    INIT_RANKS_A_S = 8, /* this many ranks add one second */
    CAUSE_MS = 1500,    /* how long before the agent NCCL may notice a lost rank */
    ABORT_MS = 1000,    /* part of the grace period that ranks of a lost job have */
    DESTROY_MS = 5000,
    LEAVE_MS = 200,       /* for threads to leave NCCL's functions */
    FREED_MS = 10 * 1000, /* the same once NCCL's kernels have ended */
};

static const struct dt_ncclapi *loaded_nccl(void)
{
    const char *why;

    return dt_ncclapi(&why);
}

/* ---- what goes wrong ---- */

static bool may_come_of_others(ncclResult_t error)
{
    return error == ncclRemoteError || error == ncclSystemError || error == ncclInternalError ||
           error == ncclUnhandledCudaError;
}

/* Waits for the agent's report, so that a survivor does not blame itself. */
static int await_cause(const struct dt_comm *c, uint32_t *culprit)
{
    uint64_t until = dt_clock_ns() + (uint64_t)CAUSE_MS * 1000000;
    int stopped = dt_comm_stopped(c, culprit);

    for (unsigned turn = 0; !stopped && dt_clock_ns() < until; turn++) {
        dt_gpu_pause(turn);
        stopped = dt_comm_stopped(c, culprit);
    }
    return stopped;
}

static dt_result_t coll_error(struct dt_comm *c, const char *function, ncclResult_t error)
{
    uint32_t culprit;
    int stopped = may_come_of_others(error) ? await_cause(c, &culprit) : 0;
    const char *last = loaded_nccl()->ncclGetLastError(NULL);

    if (stopped)
        return dt_coll_error(&c->coll_error, (dt_result_t)stopped, culprit);
    dt_fail(DT_ERR_NCCL,
            "%s: %s%s%.200s; NCCL_DEBUG=INFO makes NCCL say more, and DTRUN_DEVICE=staging does "
            "without NCCL",
            function, loaded_nccl()->ncclGetErrorString(error), last && *last ? ": " : "",
            last ? last : "");
    dt_coll_error(&c->coll_error, DT_ERR_NCCL, (uint32_t)c->world->rank);
    c->coll_error.why = dt_last_error();
    return DT_ERR_NCCL;
}

static dt_result_t cuda_trouble(struct dt_comm *c, const char *function, CUresult error)
{
    return dt_gpu_trouble(c, &c->coll_error, function, error);
}

/* ---- ending a communicator ---- */

struct ending {
    CUcontext context;
    uint64_t life;
    ncclComm_t comm;
    bool gently;
    struct dt_ncclguard *guard;
    CUdeviceptr kept[DT_NCCL_KEPT];
};

enum { NOT_ENDING, CLAIMED, ENDING };

/* ncclCommDestroy of a failed communicator would free nothing, and would not report that. */
static bool is_well(ncclComm_t comm)
{
    ncclResult_t state = ncclInternalError;

    return loaded_nccl()->ncclCommGetAsyncError(comm, &state) == ncclSuccess &&
           state == ncclSuccess;
}

static bool leave_within(struct dt_ncclguard *guard, unsigned ms)
{
    uint64_t until = dt_clock_ns() + (uint64_t)ms * 1000000;

    for (unsigned turn = 0; !dt_ncclguard_is_empty(guard); turn++) {
        if (dt_clock_ns() > until)
            return false;
        dt_gpu_pause(turn);
    }
    return true;
}

/* Waits for work that a call has handed to a thread of NCCL's own. */
static bool settles_within(ncclComm_t comm, unsigned ms)
{
    uint64_t until = dt_clock_ns() + (uint64_t)ms * 1000000;
    ncclResult_t state = ncclInProgress;

    for (unsigned turn = 0; state == ncclInProgress; turn++) {
        if (dt_clock_ns() > until)
            return false;
        dt_gpu_pause(turn);
        if (loaded_nccl()->ncclCommGetAsyncError(comm, &state) != ncclSuccess)
            return true;
    }
    return true;
}

/* A thread that waits for the driver or a peer leaves NCCL's function only after ncclCommAbort.
 * Inside a group, that frees the communicator only at the end of the group. If the thread does not
 * leave, the group is not ended and the communicator is leaked. */
static void abort_under_threads(const struct ending *e)
{
    loaded_nccl()->ncclGroupStart();
    loaded_nccl()->ncclCommAbort(e->comm);
    if (leave_within(e->guard, FREED_MS) && settles_within(e->comm, FREED_MS))
        loaded_nccl()->ncclGroupEnd();
}

/* NCCL before 2.22 frees the communicator at once, even in a group. Then nothing but an abort would
 * end the wait of a thread inside, and an abort would free the communicator under it. So this waits
 * until the thread leaves by itself. */
static bool are_gone(const struct ending *e)
{
    bool gone = leave_within(e->guard, LEAVE_MS);

    while (!gone && loaded_nccl()->version < DT_NCCL_ABORTS_IN_GROUPS)
        gone = leave_within(e->guard, LEAVE_MS);
    return gone;
}

/* In the communicator's context, which NCCL's functions use. */
static void end_comm(const struct ending *e)
{
    if (!are_gone(e))
        abort_under_threads(e);
    else if (e->gently && is_well(e->comm))
        loaded_nccl()->ncclCommDestroy(e->comm);
    else
        loaded_nccl()->ncclCommAbort(e->comm);
}

static void end_thread(void *arg)
{
    const struct ending *e = arg;
    struct dt_cuda_scope scope;
    bool entered = !dt_cuda_enter(&scope, e->context), there;

    if (entered) {
        end_comm(e);
        there = dt_gpu_life(e->context) == e->life;
        for (int i = 0; i < DT_NCCL_KEPT; i++) {
            if (there && e->kept[i])
                dt_cuda()->cuMemFree_v2(e->kept[i]);
        }
        dt_cuda_leave(&scope);
    }
    dt_ncclguard_drop(e->guard);
}

/* In stream order, since cuMemFree would wait for all work of other streams. */
static void free_scratch(struct dt_nccl *n)
{
    if (n->scratch)
        dt_cuda()->cuMemFreeAsync(n->scratch, n->stream);
    n->scratch = 0;
}

static void free_rest(struct dt_nccl *n)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_cuda_scope scope;

    if (!dt_gpu_enter_life(&scope, n->context, n->life))
        return;
    free_scratch(n);
    if (n->begun)
        cuda->cuEventDestroy_v2(n->begun);
    if (n->done)
        cuda->cuEventDestroy_v2(n->done);
    if (n->stream)
        cuda->cuStreamDestroy_v2(n->stream);
    dt_cuda_leave(&scope);
}

static void begin_end(struct dt_comm *c, bool gently)
{
    struct dt_nccl *n = &c->gpu->nccl;
    struct ending e = {
        .context = n->context, .life = n->life, .comm = n->comm, .gently = gently, .guard = n->guard
    };

    memcpy(e.kept, n->kept, sizeof e.kept);
    dt_direct_shut(c);
    dt_ncclguard_shut(n->guard);
    dt_ncclguard_hold(n->guard);
    n->ending = dt_errand_start(end_thread, NULL, &e, sizeof e);
    if (!n->ending)
        dt_ncclguard_drop(n->guard);
    atomic_store(&n->end, ENDING);
}

static bool claim_end(struct dt_nccl *n)
{
    int none = NOT_ENDING;

    return atomic_compare_exchange_strong(&n->end, &none, CLAIMED);
}

/* Called when the communicator's thread waits in the driver or inside NCCL. */
static void end_stuck(struct dt_comm *c)
{
    if (claim_end(&c->gpu->nccl))
        begin_end(c, false);
}

static bool await_end(struct dt_comm *c, bool gently)
{
    struct dt_nccl *n = &c->gpu->nccl;
    bool ended;

    if (claim_end(n))
        begin_end(c, gently);
    for (unsigned turn = 0; atomic_load(&n->end) != ENDING; turn++)
        dt_gpu_pause(turn);
    ended = n->ending && dt_errand_await(n->ending, gently ? DESTROY_MS : ABORT_MS);
    dt_errand_end(n->ending);
    return ended;
}

/* Keeps `end`, which another thread may be about to claim, and `guard`, which tells a thread that
 * is about to use the communicator that it is gone. */
static void forget_comm(struct dt_nccl *n)
{
    n->comm = NULL;
    n->rank = 0;
    n->size = 0;
    n->device = 0;
    n->context = NULL;
    n->life = 0;
    n->stream = NULL;
    n->begun = NULL;
    n->done = NULL;
    n->scratch = 0;
    n->has_pools = false;
    n->ending = NULL;
    memset(n->kept, 0, sizeof n->kept);
}

/* What NCCL does not end in time is leaked: freeing memory that its kernel may still use would wait
 * for the kernel. */
static void take_down(struct dt_comm *c, bool gently)
{
    struct dt_nccl *n = &c->gpu->nccl;
    bool ended = !n->comm || await_end(c, gently);

    if (ended && n->context)
        free_rest(n);
    forget_comm(n);
}

/* A destroy would wait for a lost peer, even if no call has noticed the loss. */
void dt_nccl_close(struct dt_comm *c)
{
    take_down(c, c->failed == DT_OK && !dt_comm_stopped(c, NULL));
    dt_ncclguard_drop(c->gpu->nccl.guard);
    c->gpu->nccl.guard = NULL;
}

/* ---- making a communicator ---- */

struct identity {
    ncclUniqueId id;
    uint64_t error; /* if rank 0 has no id, the reason */
};

struct beginning {
    CUcontext context;
    ncclUniqueId id;
    int rank;
    int size;
    ncclComm_t comm;
    ncclResult_t result;
};

/* Runs in a thread of its own, which may wait in NCCL for ever. */
static void begin_thread(void *arg)
{
    struct dt_nccl_config config = DT_NCCL_CONFIG_INITIALIZER;
    struct beginning *b = arg;
    struct dt_cuda_scope scope;

    b->result = ncclUnhandledCudaError;
    if (dt_cuda_enter(&scope, b->context))
        return;
    config.blocking = loaded_nccl()->blocks;
    b->result = loaded_nccl()->ncclCommInitRankConfig(&b->comm, b->size, b->id, b->rank,
                                                      (ncclConfig_t *)&config);
    dt_cuda_leave(&scope);
}

/* For a communicator that is made after the errand was abandoned. */
static void abort_beginning(void *arg)
{
    const struct beginning *b = arg;
    struct dt_cuda_scope scope;

    if (!b->comm || dt_cuda_enter(&scope, b->context))
        return;
    loaded_nccl()->ncclCommAbort(b->comm);
    dt_cuda_leave(&scope);
}

static dt_result_t time_out(struct dt_comm *c, unsigned seconds)
{
    dt_fail(DT_ERR_TIMEOUT,
            "NCCL has not connected the %d ranks in %u s (DTRUN_NCCL_INIT_TIMEOUT); "
            "NCCL_DEBUG=INFO shows where it waits, NCCL_SOCKET_IFNAME names the network to use",
            c->gpu->nccl.size, seconds);
    dt_coll_error(&c->coll_error, DT_ERR_TIMEOUT, (uint32_t)c->world->rank);
    c->coll_error.why = dt_last_error();
    return DT_ERR_TIMEOUT;
}

unsigned dt_nccl_init_seconds(unsigned chosen, int size)
{
    return chosen ? chosen : INIT_S + (unsigned)size / INIT_RANKS_A_S;
}

/* Returns ncclInProgress if it is not done, and ncclInternalError once its end has begun. */
static ncclResult_t async_result(const struct dt_nccl *n)
{
    ncclResult_t state = ncclInProgress, asked;

    if (!dt_ncclguard_enter(n->guard))
        return ncclInternalError;
    asked = loaded_nccl()->ncclCommGetAsyncError(n->comm, &state);
    dt_ncclguard_leave(n->guard);
    return asked == ncclSuccess ? state : asked;
}

/* In a call that blocks, NCCL may wait for a peer. Once the communicator has been stopped, the
 * thread that watches gates (gate.h) ends it. */
static ncclResult_t queue_watched(struct dt_nccl *n, struct dt_ncclcall *call,
                                  const struct dt_operation *o)
{
    ncclResult_t queued;

    if (loaded_nccl()->blocks)
        dt_gpu_watch(&n->watched);
    queued = dt_ncclcalls_queue(call, o);
    if (loaded_nccl()->blocks)
        dt_gpu_unwatch(&n->watched);
    return queued;
}

/* Returns a state like look(). name: as in struct dt_ncclcall. */
static ncclResult_t call_nccl(struct dt_nccl *n, const struct dt_operation *o, CUstream stream,
                              const char **name)
{
    struct dt_ncclcall call = {
        .comm = n->comm, .stream = stream, .rank = n->rank, .size = n->size
    };
    ncclResult_t queued = ncclInternalError;

    *name = "ncclCommAbort";
    if (!dt_ncclguard_enter(n->guard))
        return queued;
    queued = queue_watched(n, &call, o);
    dt_ncclguard_leave(n->guard);
    *name = call.name;
    return queued;
}

static ncclResult_t look_at_beginning(struct dt_comm *c, struct dt_errand *errand)
{
    const struct beginning *b = dt_errand_result(errand);

    if (!b)
        return ncclInProgress;
    c->gpu->nccl.comm = b->comm;
    if (b->result != ncclSuccess && b->result != ncclInProgress)
        return b->result;
    return async_result(&c->gpu->nccl);
}

static dt_result_t await_beginning(struct dt_comm *c, void *errand)
{
    unsigned seconds = dt_nccl_init_seconds(c->world->settings.nccl_init_s, c->size);
    uint64_t until = dt_clock_ns() + (uint64_t)seconds * 1000000000;
    uint32_t culprit;

    for (unsigned turn = 0;; turn++) {
        ncclResult_t state = look_at_beginning(c, errand);
        int stopped;

        if (state == ncclSuccess)
            return DT_OK;
        if (state != ncclInProgress)
            return coll_error(c, "ncclCommInitRankConfig", state);
        stopped = dt_comm_stopped(c, &culprit);
        if (stopped)
            return dt_coll_error(&c->coll_error, (dt_result_t)stopped, culprit);
        if (dt_clock_ns() > until)
            return time_out(c, seconds);
        dt_gpu_pause(turn);
    }
}

static dt_result_t exchange_identity(struct dt_comm *c, ncclUniqueId *id)
{
    struct identity mine = { 0 };
    dt_result_t r;

    if (c->rank == 0)
        mine.error = (uint64_t)loaded_nccl()->ncclGetUniqueId(&mine.id);
    r = dt_comm_broadcast_bytes(c, DT_CALL_GPU_CHOICE, &mine, sizeof mine, 0);
    if (r != DT_OK)
        return r;
    *id = mine.id;
    if (!mine.error)
        return DT_OK;
    coll_error(c, "ncclGetUniqueId", (ncclResult_t)mine.error);
    return dt_comm_fail_outside(c);
}

static CUresult make_own(struct dt_nccl *n)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = dt_cuda_make_stream(&n->stream);
    int pools = 0;

    if (!cuda->cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, n->device))
        n->has_pools = pools != 0;
    if (!result)
        result = cuda->cuEventCreate(&n->begun, CU_EVENT_DISABLE_TIMING);
    return result ? result : cuda->cuEventCreate(&n->done, CU_EVENT_DISABLE_TIMING);
}

static dt_result_t connect_nccl(struct dt_comm *c)
{
    const struct dt_nccl *n = &c->gpu->nccl;
    struct beginning b = { .context = n->context, .rank = n->rank, .size = n->size };
    uint32_t limit_ms = c->limit_ms;
    struct dt_errand *errand;
    dt_result_t r = exchange_identity(c, &b.id);

    if (r != DT_OK || n->rank < 0)
        return r;
    errand = dt_errand_start(begin_thread, abort_beginning, &b, sizeof b);
    if (!errand) {
        dt_comm_no_memory(c);
        return dt_comm_fail_outside(c);
    }
    c->limit_ms = DT_HOSTSHM_NO_LIMIT; /* connecting has a limit of its own */
    r = dt_comm_aside(c, DT_CALL_GPU_CHOICE, await_beginning, errand);
    c->limit_ms = limit_ms;
    if (r != DT_OK && dt_errand_abandon(errand))
        return r;
    look_at_beginning(c, errand); /* it may have ended just now */
    dt_errand_end(errand);
    return r;
}

dt_result_t dt_nccl_connect(struct dt_comm *c, const struct dt_gpu_order *order, int rank, int size)
{
    struct dt_nccl *n = &c->gpu->nccl;
    CUresult result;

    if (n->comm)
        return DT_OK;
    if (!n->guard)
        n->guard = dt_ncclguard_new();
    if (!n->guard || (rank >= 0 && loaded_nccl()->blocks && !dt_gpu_watch_begin())) {
        dt_comm_no_memory(c);
        return dt_comm_fail_outside(c);
    }
    n->watched.comm = c;
    n->watched.stuck = end_stuck;
    atomic_store(&n->end, NOT_ENDING); /* no call has been launched that could be stuck */
    n->rank = rank;
    n->size = size;
    n->context = order->context;
    n->life = dt_gpu_life(n->context);
    n->device = order->device;
    result = rank < 0 ? CUDA_SUCCESS : make_own(n);
    return result ? dt_gpu_fail(c, "cuStreamCreate", result) : connect_nccl(c);
}

/* ---- calls ---- */

/* Freeing this memory would wait for the whole device, so it is kept for later calls. */
static CUresult take_kept(struct dt_nccl *n, size_t bytes, CUdeviceptr *scratch)
{
    int power = bytes > 1 ? 64 - __builtin_clzl(bytes - 1) : 0;
    CUresult result = CUDA_SUCCESS;

    if (!n->kept[power])
        result = dt_cuda()->cuMemAlloc_v2(&n->kept[power], (size_t)1 << power);
    *scratch = n->kept[power];
    return result;
}

static CUresult take_scratch(struct dt_nccl *n, size_t bytes, CUdeviceptr *scratch)
{
    CUresult result;

    if (!n->has_pools)
        return take_kept(n, bytes, scratch);
    result = dt_cuda()->cuMemAllocAsync(&n->scratch, bytes, n->stream);
    *scratch = n->scratch;
    return result;
}

/* NCCL has no all-to-all in place, so the input is set aside. */
static dt_result_t set_aside(struct dt_comm *c, struct dt_operation *o)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_nccl *n = &c->gpu->nccl;
    size_t bytes = o->given.each * dt_dtype_size(o->dtype) * (size_t)c->size;
    CUdeviceptr scratch;
    CUresult result;

    if (o->kind->call != DT_CALL_ALL_TO_ALL || o->in != o->out || !bytes)
        return DT_OK;
    result = take_scratch(n, bytes, &scratch);
    if (result)
        return cuda_trouble(c, "cuMemAlloc", result);
    result = cuda->cuMemcpyDtoDAsync_v2(scratch, (CUdeviceptr)(uintptr_t)o->in, bytes, n->stream);
    o->in = (const void *)(uintptr_t)scratch;
    return result ? cuda_trouble(c, "cuMemcpyDtoDAsync", result) : DT_OK;
}

static dt_result_t queue_nccl_call(struct dt_comm *c, struct dt_operation *o, const char **name)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_nccl *n = &c->gpu->nccl;
    CUresult result = dt_gpu_order_follow(&o->order, n->stream);
    dt_result_t r;
    ncclResult_t queued;

    if (!result)
        result = cuda->cuEventRecord(n->begun, n->stream);
    if (result)
        return cuda_trouble(c, "cuStreamWaitEvent", result);
    r = set_aside(c, o);
    if (r != DT_OK)
        return r;
    queued = call_nccl(n, o, n->stream, name);
    return queued == ncclSuccess || queued == ncclInProgress ? DT_OK : coll_error(c, *name, queued);
}

struct making {
    const struct dt_operation *o;
    struct dt_launch launch;
};

dt_result_t dt_nccl_await_turn(struct dt_comm *c, const struct dt_launch *launch)
{
    dt_result_t r = DT_OK;

    for (unsigned turn = 0; r == DT_OK && launch->stamp && !dt_launch_may(launch); turn++)
        r = dt_gpu_wait_on(c, NULL, turn);
    return r;
}

dt_result_t dt_nccl_check(struct dt_comm *c)
{
    ncclResult_t state = c->gpu->nccl.comm ? async_result(&c->gpu->nccl) : ncclSuccess;

    return state == ncclSuccess || state == ncclInProgress
               ? DT_OK
               : coll_error(c, "ncclCommGetAsyncError", state);
}

dt_result_t dt_nccl_queue(struct dt_comm *c, const struct dt_operation *o, CUstream stream)
{
    struct dt_nccl *n = &c->gpu->nccl;
    const char *name;
    ncclResult_t state = call_nccl(n, o, stream, &name);

    for (unsigned turn = 0; state == ncclSuccess || state == ncclInProgress; turn++) {
        dt_result_t r;

        state = async_result(n);
        if (state == ncclSuccess)
            return DT_OK;
        r = dt_gpu_wait_on(c, NULL, turn);
        if (r != DT_OK)
            return r;
    }
    return coll_error(c, name, state);
}

enum progress { WAITING, DONE, FAILED };

/* The event stands for the call only once NCCL has put its kernel on the stream. */
static enum progress look_at_event(struct dt_comm *c, bool *recorded)
{
    const struct dt_nccl *n = &c->gpu->nccl;
    CUresult result = *recorded ? CUDA_SUCCESS : dt_cuda()->cuEventRecord(n->done, n->stream);

    *recorded = true;
    if (!result)
        result = dt_cuda()->cuEventQuery(n->done);
    if (result == CUDA_SUCCESS)
        return DONE;
    if (result == CUDA_ERROR_NOT_READY)
        return WAITING;
    cuda_trouble(c, "cuEventQuery", result);
    return FAILED;
}

static enum progress look_at_call(struct dt_comm *c, const char *name, bool *recorded)
{
    ncclResult_t state = async_result(&c->gpu->nccl);

    if (state == ncclSuccess)
        return look_at_event(c, recorded);
    if (state == ncclInProgress)
        return WAITING;
    coll_error(c, name, state);
    return FAILED;
}

static dt_result_t await_call(struct dt_comm *c, const char *name, struct making *m)
{
    struct dt_gpu_arrival arrival = { .begun = c->gpu->nccl.begun, .kind = m->o->kind->call };
    bool recorded = false;

    for (unsigned turn = 0;; turn++) {
        enum progress progress = look_at_call(c, name, &recorded);
        dt_result_t r;

        if (recorded)
            dt_launch_end(&m->launch);
        if (progress != WAITING)
            return progress == DONE ? DT_OK : c->coll_error.code;
        r = dt_gpu_wait_on(c, &arrival, turn);
        if (r != DT_OK)
            return r;
    }
}

static dt_result_t make_nccl_call(struct dt_comm *c, void *arg)
{
    struct making *m = arg;
    struct dt_operation o = *m->o;
    const char *name = "";
    dt_result_t r = dt_nccl_await_turn(c, &m->launch);

    c->shm.algorithm = "nccl";
    c->leaders.algorithm = NULL;
    if (r == DT_OK)
        r = queue_nccl_call(c, &o, &name);
    if (r == DT_OK)
        r = await_call(c, name, m);
    if (r == DT_OK)
        free_scratch(&c->gpu->nccl);
    return r;
}

/* ---- calls that another thread launches ---- */

/* While a later call is launched NCCL is in progress, which says nothing about this one. */
static enum progress look_at_direct(struct dt_comm *c, const struct dt_direct *d)
{
    ncclResult_t state;
    CUresult result;
    bool well;

    if (atomic_load(&d->state) == DT_DIRECT_LAUNCHING)
        return WAITING;
    state = d->result ? d->result : async_result(&c->gpu->nccl);
    well = state == ncclSuccess || state == ncclInProgress;
    result = d->error || !well ? d->error : dt_cuda()->cuEventQuery(d->done);
    if (well && !result)
        return DONE;
    if (result == CUDA_ERROR_NOT_READY)
        return WAITING;
    if (result)
        cuda_trouble(c, d->error ? d->name : "cuEventQuery", result);
    else
        coll_error(c, d->name, state);
    return FAILED;
}

static dt_result_t await_direct(struct dt_comm *c, void *arg)
{
    const struct dt_operation *o = arg;
    struct dt_gpu_arrival arrival = { .begun = o->direct->begun, .kind = o->kind->call };

    c->shm.algorithm = "nccl+stream";
    c->leaders.algorithm = NULL;
    for (unsigned turn = 0;; turn++) {
        enum progress progress = look_at_direct(c, o->direct);
        dt_result_t r;

        if (progress != WAITING)
            return progress == DONE ? DT_OK : c->coll_error.code;
        r = dt_gpu_wait_on(c, &arrival, turn);
        if (r != DT_OK)
            return r;
    }
}

static dt_result_t match_and_await(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_operation launched = *o;

    return dt_comm_match_and(c, o->kind->call, dt_gpu_call(o), await_direct, &launched);
}

/* ---- the order of calls ---- */

static dt_result_t agree_on_launch(struct dt_comm *c, struct dt_launch *launch)
{
    int64_t stamp;
    dt_result_t r;

    dt_launch_propose(launch, c->id);
    stamp = launch->stamp;
    r = dt_comm_all_reduce_words(c, DT_CALL_GPU_ORDER, &stamp, 1, DT_MAX);
    if (r == DT_OK)
        dt_launch_agree(launch, stamp);
    return r;
}

/* A program with one communicator launches in the order of its calls. Every other communicator
 * descends from DT_WORLD, so all ranks know of the first one when they next make a call on
 * DT_WORLD. */
bool dt_nccl_needs_agreement(const struct dt_comm *c)
{
    return c->id != 0 || c->world->was_split;
}

dt_result_t dt_nccl_agree(struct dt_comm *c, const struct dt_operation *o, struct dt_launch *launch)
{
    dt_result_t r;

    if (!dt_nccl_needs_agreement(c))
        return DT_OK;
    r = dt_comm_match(c, o->kind->call, dt_gpu_call(o));
    return r == DT_OK ? agree_on_launch(c, launch) : r;
}

static dt_result_t match_and_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct making m = { .o = o };
    dt_result_t r = dt_nccl_agree(c, o, &m.launch);

    if (r == DT_OK)
        r = dt_comm_match_and(c, o->kind->call, dt_gpu_call(o), make_nccl_call, &m);
    dt_launch_end(&m.launch);
    return r;
}

static dt_result_t make_in_context(struct dt_comm *c, const struct dt_operation *o)
{
    dt_result_t r = dt_nccl_connect(c, &o->order, c->rank, c->size);

    if (r == DT_OK)
        r = dt_gpu_check_device(c, o, c->gpu->nccl.device);
    return r == DT_OK ? match_and_make(c, o) : r;
}

void dt_nccl_give_up(struct dt_comm *c)
{
    take_down(c, false);
}

dt_result_t dt_nccl_open(struct dt_comm *c, const struct dt_gpu_order *order)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, order->context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, "cuCtxPushCurrent", result);
    r = dt_nccl_connect(c, order, c->rank, c->size);
    dt_cuda_leave(&scope);
    if (r == DT_OK)
        dt_direct_open(c, end_stuck);
    else
        dt_nccl_give_up(c);
    return r;
}

dt_result_t dt_nccl_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_nccl *n = &c->gpu->nccl;
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, n->comm ? n->context : o->order.context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, "cuCtxPushCurrent", result);
    r = o->direct ? match_and_await(c, o) : make_in_context(c, o);
    dt_cuda_leave(&scope);
    if (r != DT_OK)
        dt_nccl_give_up(c);
    return r;
}
