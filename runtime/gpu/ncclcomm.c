#include "runtime/gpu/ncclcomm.h"

#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/collective.h"
#include "runtime/gpu/device/errand.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/leave.h"
#include "runtime/gpu/ncclerror.h"
#include "runtime/gpu/ncclguard.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"

enum {
    ABORT_MS = 1000, /* part of the grace period that ranks of a lost job have */
    DESTROY_MS = 5000,
    LEAVE_MS = 200,               /* for threads to leave NCCL's functions */
    LEAVE_ABORTED_MS = 10 * 1000, /* the same after ncclCommAbort, which ends NCCL's kernels */
};

enum { NOT_ENDING, CLAIMED, ENDING };

static ncclResult_t ask_state(const struct dt_ncclcomm *n)
{
    ncclResult_t state = ncclInProgress, asked;

    if (!dt_ncclguard_enter(n->guard))
        return ncclInternalError;
    asked = dt_nccl()->ncclCommGetAsyncError(n->comm, &state);
    dt_ncclguard_leave(n->guard);
    return asked == ncclSuccess ? state : asked;
}

/* If calls do not block, ncclCommGetAsyncError joins the thread that NCCL has started for the last
 * call and frees what belonged to it. NCCL does that without a lock. */
ncclResult_t dt_ncclcomm_state(struct dt_comm *c)
{
    ncclResult_t state;

    if (dt_nccl()->blocks)
        return ask_state(&c->gpu->nccl);
    if (!dt_direct_pause(c))
        return ncclInProgress;
    state = ask_state(&c->gpu->nccl);
    dt_direct_resume(c);
    return state;
}

bool dt_ncclcomm_begin(struct dt_comm *c, const struct dt_gpu_order *order, int rank, int size)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;

    if (!n->guard)
        n->guard = dt_ncclguard_new();
    if (!n->guard || (rank >= 0 && dt_nccl()->blocks && !dt_gpu_watch_begin()))
        return false;
    n->watched.comm = c;
    n->watched.stuck = dt_ncclcomm_end_stuck;
    atomic_store(&n->end, NOT_ENDING); /* no call has been launched that could be stuck */
    n->rank = rank;
    n->size = size;
    n->context = order->context;
    n->life = dt_gpu_life(n->context);
    n->device = order->device;
    return true;
}

/* ---- scratch memory ---- */

/* Freeing this memory would wait for the whole device, so it is kept for later calls. */
static CUresult alloc_kept(struct dt_ncclcomm *n, size_t bytes, CUdeviceptr *scratch)
{
    int power = bytes > 1 ? 64 - __builtin_clzl(bytes - 1) : 0;
    CUresult result = CUDA_SUCCESS;

    if (!n->kept[power])
        result = dt_cuda()->cuMemAlloc_v2(&n->kept[power], (size_t)1 << power);
    *scratch = n->kept[power];
    return result;
}

CUresult dt_ncclcomm_alloc_scratch(struct dt_ncclcomm *n, size_t bytes, CUdeviceptr *scratch)
{
    CUresult result = dt_cuda()->cuMemAllocAsync(&n->scratch, bytes, n->stream);

    if (result) {
        n->scratch = 0;
        return alloc_kept(n, bytes, scratch);
    }
    *scratch = n->scratch;
    return result;
}

/* In stream order, since cuMemFree would wait for all work of other streams. */
void dt_ncclcomm_free_scratch(struct dt_ncclcomm *n)
{
    if (n->scratch)
        dt_cuda()->cuMemFreeAsync(n->scratch, n->stream);
    n->scratch = 0;
}

/* ---- ending a communicator ---- */

struct ending {
    CUcontext context;
    uint64_t life;
    ncclComm_t comm;
    bool gently;
    struct dt_ncclguard *guard;
    CUdeviceptr kept[DT_NCCLCOMM_KEPT];
};

/* ncclCommDestroy of a failed communicator would free nothing, and would not report that. */
static bool is_healthy(ncclComm_t comm)
{
    ncclResult_t state = ncclInternalError;

    return dt_nccl()->ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclSuccess;
}

static bool is_empty(void *guard)
{
    return dt_ncclguard_is_empty(guard);
}

static bool threads_leave(struct dt_ncclguard *guard, unsigned ms)
{
    return dt_gpu_wait_at_most(ms, is_empty, guard);
}

/* Whether NCCL's own thread has done what a call has handed to it. */
static bool is_settled(void *comm)
{
    ncclResult_t state = ncclInProgress;

    return dt_nccl()->ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress;
}

/* A thread that waits for the driver or a peer leaves NCCL's function only after ncclCommAbort.
 * Inside a group, ncclCommAbort frees the communicator only at the end of the group. If the thread
 * does not leave, the group is not ended and the communicator is leaked. */
static void abort_under_threads(const struct ending *e)
{
    dt_nccl()->ncclGroupStart();
    dt_nccl()->ncclCommAbort(e->comm);
    if (threads_leave(e->guard, LEAVE_ABORTED_MS) &&
        dt_gpu_wait_at_most(LEAVE_ABORTED_MS, is_settled, e->comm))
        dt_nccl()->ncclGroupEnd();
}

/* Before 2.22 NCCL's abort frees the communicator at once, even in a group, so it must not be
 * called while a thread is inside. Nothing else would end that thread's wait. So with such a
 * version this waits until the thread leaves by itself. */
static bool await_threads(const struct ending *e)
{
    bool gone = threads_leave(e->guard, LEAVE_MS);

    while (!gone && dt_nccl()->version < DT_NCCL_ABORTS_IN_GROUPS)
        gone = threads_leave(e->guard, LEAVE_MS);
    return gone;
}

/* In the communicator's context, which NCCL's functions use. */
static void destroy_or_abort(const struct ending *e)
{
    if (!await_threads(e))
        abort_under_threads(e);
    else if (e->gently && is_healthy(e->comm))
        dt_nccl()->ncclCommDestroy(e->comm);
    else
        dt_nccl()->ncclCommAbort(e->comm);
}

/* Runs in a thread of its own, which may wait in NCCL for ever. If the program has destroyed the
 * context, NCCL's communicator is leaked: NCCL would use streams and memory that are gone. */
static void end_comm(void *arg)
{
    const struct ending *e = arg;
    struct dt_cuda_scope scope;
    bool alive;

    if (dt_gpu_enter_life(&scope, e->context, e->life)) {
        destroy_or_abort(e);
        alive = dt_gpu_life(e->context) == e->life; /* the context, with the memory in it */
        for (int i = 0; i < DT_NCCLCOMM_KEPT; i++) {
            if (alive && e->kept[i])
                dt_cuda()->cuMemFree_v2(e->kept[i]);
        }
        dt_cuda_leave(&scope);
    }
    dt_ncclguard_drop(e->guard);
}

static void free_stream(struct dt_ncclcomm *n)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_cuda_scope scope;

    if (!dt_gpu_enter_life(&scope, n->context, n->life))
        return;
    dt_ncclcomm_free_scratch(n);
    if (n->begun)
        cuda->cuEventDestroy_v2(n->begun);
    if (n->done)
        cuda->cuEventDestroy_v2(n->done);
    if (n->stream)
        cuda->cuStreamDestroy_v2(n->stream);
    dt_cuda_leave(&scope);
}

static void start_ending(struct dt_comm *c, bool gently)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    struct ending e = {
        .context = n->context, .life = n->life, .comm = n->comm, .gently = gently, .guard = n->guard
    };

    memcpy(e.kept, n->kept, sizeof e.kept);
    dt_direct_shut(c);
    dt_ncclguard_shut(n->guard);
    dt_ncclguard_hold(n->guard);
    n->ending = dt_errand_start(end_comm, NULL, &e, sizeof e);
    if (!n->ending)
        dt_ncclguard_drop(n->guard);
    atomic_store(&n->end, ENDING);
}

static bool claim_end(struct dt_ncclcomm *n)
{
    int none = NOT_ENDING;

    return atomic_compare_exchange_strong(&n->end, &none, CLAIMED);
}

static void leave_if_inside(struct dt_comm *c)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    uint64_t now = dt_clock_ns();

    if (dt_ncclguard_is_empty(n->guard))
        n->inside_ns = 0;
    else if (!n->inside_ns)
        n->inside_ns = now;
    else
        dt_leave_if_due(c, now - n->inside_ns);
}

void dt_ncclcomm_end_stuck(struct dt_comm *c)
{
    if (claim_end(&c->gpu->nccl))
        start_ending(c, false);
    leave_if_inside(c);
}

static bool await_end(struct dt_comm *c, bool gently)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    bool ended;

    if (claim_end(n))
        start_ending(c, gently);
    for (unsigned turn = 0; atomic_load(&n->end) != ENDING; turn++)
        dt_gpu_pause(turn);
    ended = n->ending && dt_errand_await(n->ending, gently ? DESTROY_MS : ABORT_MS);
    dt_errand_end(n->ending);
    return ended;
}

/* Keeps `end`, since another thread may be about to claim it, and `guard`, from which a thread that
 * comes late learns that the communicator is gone. */
static void clear_comm(struct dt_ncclcomm *n)
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
    n->ending = NULL;
    memset(n->kept, 0, sizeof n->kept);
}

/* What NCCL does not end in time is leaked: freeing memory that its kernel may still use would wait
 * for the kernel. */
static void end_and_free(struct dt_comm *c, bool gently)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    bool ended = !n->comm || await_end(c, gently);

    if (ended && n->context)
        free_stream(n);
    clear_comm(n);
}

void dt_ncclcomm_abort(struct dt_comm *c)
{
    end_and_free(c, false);
}

static void end_for_good(struct dt_comm *c, bool gently)
{
    end_and_free(c, gently);
    dt_ncclguard_drop(c->gpu->nccl.guard);
    c->gpu->nccl.guard = NULL;
}

void dt_ncclcomm_discard(struct dt_comm *c)
{
    end_for_good(c, false);
}

/* A destroy would wait for a lost peer, even if no call has noticed the loss. */
void dt_ncclcomm_close(struct dt_comm *c)
{
    end_for_good(c, c->failed == DT_OK && !dt_comm_stopped(c));
}
