#include "runtime/gpu/direct.h"

#include <stdlib.h>

#include "runtime/comm/comm.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/ncclcalls.h"
#include "runtime/gpu/ncclguard.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/gpu/operation.h"

void dt_direct_open(struct dt_comm *c, void (*stuck)(struct dt_comm *c))
{
    const struct dt_ncclcomm *n = &c->gpu->nccl;
    struct dt_directs *all = &c->gpu->directs;

    if (!all->made) {
        pthread_mutex_init(&all->mutex, NULL);
        pthread_mutex_init(&all->free_mutex, NULL);
    }
    all->made = true;
    all->context = n->context;
    all->life = n->life;
    all->comm = n->comm;
    all->rank = n->rank;
    all->size = n->size;
    all->watched.comm = c;
    all->watched.stuck = stuck;
    atomic_store(&all->open, true);
}

void dt_direct_shut(struct dt_comm *c)
{
    atomic_store(&c->gpu->directs.open, false);
}

static void destroy_events(const struct dt_direct *d)
{
    if (d->begun)
        dt_cuda()->cuEventDestroy_v2(d->begun);
    if (d->done)
        dt_cuda()->cuEventDestroy_v2(d->done);
}

bool dt_direct_pause(struct dt_comm *c)
{
    struct dt_directs *all = &c->gpu->directs;

    return !all->made || pthread_mutex_trylock(&all->mutex) == 0;
}

void dt_direct_resume(struct dt_comm *c)
{
    struct dt_directs *all = &c->gpu->directs;

    if (all->made)
        pthread_mutex_unlock(&all->mutex);
}

void dt_direct_close(struct dt_comm *c)
{
    struct dt_directs *all = &c->gpu->directs;
    struct dt_cuda_scope scope;
    bool is_alive = all->free && dt_gpu_enter_life(&scope, all->context, all->life);

    while (all->free) {
        struct dt_direct *d = all->free;

        all->free = d->next;
        if (is_alive)
            destroy_events(d);
        free(d);
    }
    if (is_alive)
        dt_cuda_leave(&scope);
    atomic_store(&all->done, NULL);
    all->last = NULL;
    if (all->made) {
        pthread_mutex_destroy(&all->mutex);
        pthread_mutex_destroy(&all->free_mutex);
    }
    all->made = false;
}

/* The GPU finishes the newest call last, whichever streams the calls are on. */
bool dt_direct_all_done(struct dt_comm *c)
{
    struct dt_directs *all = &c->gpu->directs;
    CUevent done = atomic_load(&all->done);
    struct dt_cuda_scope scope;
    CUresult result;

    if (!done || !dt_gpu_enter_life(&scope, all->context, all->life))
        return false;
    result = dt_cuda()->cuEventQuery(done);
    dt_cuda_leave(&scope);
    return result == CUDA_SUCCESS;
}

/* ---- calls ---- */

static CUresult make_direct(struct dt_direct **call, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_direct *d = calloc(1, sizeof *d);
    CUresult result;

    *function = "calloc";
    if (!d)
        return DT_CUDA_NO_HOST_MEMORY;
    *function = "cuEventCreate";
    result = cuda->cuEventCreate(&d->begun, CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = cuda->cuEventCreate(&d->done, CU_EVENT_DISABLE_TIMING);
    if (result) {
        destroy_events(d);
        free(d);
        return result;
    }
    *call = d;
    return CUDA_SUCCESS;
}

static struct dt_direct *take_free_direct(struct dt_directs *all)
{
    struct dt_direct *d;

    pthread_mutex_lock(&all->free_mutex);
    d = all->free;
    if (d)
        all->free = d->next;
    pthread_mutex_unlock(&all->free_mutex);
    return d;
}

static void give_back(struct dt_directs *all, struct dt_direct *d)
{
    pthread_mutex_lock(&all->free_mutex);
    d->next = all->free;
    all->free = d;
    pthread_mutex_unlock(&all->free_mutex);
}

CUresult dt_direct_begin(struct dt_comm *c, CUstream stream, struct dt_direct **call,
                         const char **function)
{
    struct dt_directs *all = &c->gpu->directs;
    struct dt_direct *d = take_free_direct(all);
    CUresult result = d ? CUDA_SUCCESS : make_direct(&d, function);

    if (result)
        return result;
    atomic_store(&d->state, DT_DIRECT_LAUNCHING);
    d->error = CUDA_SUCCESS;
    d->result = ncclSuccess;
    *function = "cuEventRecord";
    result = dt_cuda()->cuEventRecord(d->begun, stream);
    if (result) {
        give_back(all, d);
        return result;
    }
    dt_gpu_provision_forbid(c);
    dt_gpu_watch(&all->watched);
    *call = d;
    return CUDA_SUCCESS;
}

void dt_direct_cancel(struct dt_comm *c, struct dt_direct *d)
{
    dt_gpu_unwatch(&c->gpu->directs.watched);
    dt_gpu_provision_allow();
    give_back(&c->gpu->directs, d);
}

void dt_direct_end(struct dt_comm *c, struct dt_direct *d)
{
    if (atomic_exchange(&d->state, DT_DIRECT_LEFT) == DT_DIRECT_LAUNCHED)
        dt_direct_cancel(c, d);
}

/* NCCL may enqueue its kernel from a thread of its own, even after the call has returned. */
static ncclResult_t await_launch(struct dt_comm *c, ncclComm_t comm)
{
    for (unsigned turn = 0;; turn++) {
        ncclResult_t state = ncclInProgress;

        if (dt_nccl()->ncclCommGetAsyncError(comm, &state) != ncclSuccess)
            return ncclInternalError;
        if (state != ncclInProgress)
            return state;
        if (!atomic_load(&c->gpu->directs.open) || dt_comm_stopped(c))
            return ncclInternalError;
        dt_gpu_pause(turn);
    }
}

/* NCCL's communicator has been aborted, or is about to be. */
static void refuse_direct(struct dt_direct *d)
{
    d->result = ncclInternalError;
    d->name = "ncclCommAbort";
}

static void queue_on_nccl(struct dt_comm *c, const struct dt_operation *o, CUstream stream)
{
    const struct dt_directs *all = &c->gpu->directs;
    struct dt_direct *d = o->direct;
    struct dt_ncclcall call = {
        .comm = all->comm, .stream = stream, .rank = all->rank, .size = all->size
    };

    d->result = dt_ncclcalls_queue(&call, o);
    d->name = call.name;
    if (!dt_nccl_failed(d->result))
        d->result = await_launch(c, call.comm);
    if (d->result)
        return;
    d->error = dt_ncclcalls_finish(&call, o);
    if (d->error)
        d->name = "cuMemcpyDtoDAsync";
}

/* CU_STREAM_PER_THREAD stands for another stream in each thread. */
static void launch_queued(struct dt_comm *c, const struct dt_operation *o, CUstream stream)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_directs *all = &c->gpu->directs;
    struct dt_ncclguard *guard = c->gpu->nccl.guard;
    struct dt_direct *d = o->direct;

    d->name = "cuStreamWaitEvent";
    if (all->last && (all->last != stream || stream == CU_STREAM_PER_THREAD))
        d->error = cuda->cuStreamWaitEvent(stream, atomic_load(&all->done), CU_EVENT_WAIT_DEFAULT);
    if (d->error)
        return;
    if (dt_ncclguard_enter(guard)) {
        queue_on_nccl(c, o, stream);
        dt_ncclguard_leave(guard);
    } else {
        refuse_direct(d);
    }
    if (d->result || d->error)
        return;
    all->last = stream;
    atomic_store(&all->done, d->done);
    d->name = "cuEventRecord";
    d->error = cuda->cuEventRecord(d->done, stream);
}

/* After a call that was not launched, no later one may be launched: other ranks would take it for
 * the one that is missing. */
void dt_direct_launch(struct dt_comm *c, const struct dt_operation *o, CUstream stream)
{
    struct dt_directs *all = &c->gpu->directs;
    struct dt_direct *d = o->direct;

    pthread_mutex_lock(&all->mutex);
    if (atomic_load(&all->open))
        launch_queued(c, o, stream);
    else
        refuse_direct(d);
    if (d->result || d->error)
        dt_direct_shut(c);
    pthread_mutex_unlock(&all->mutex);
    if (atomic_exchange(&d->state, DT_DIRECT_LAUNCHED) == DT_DIRECT_LEFT)
        dt_direct_cancel(c, d);
}
