#include "runtime/gpu/nccl.h"

#include <stdio.h>

#include "runtime/comm/collective.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/provision.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/launchorder.h"
#include "runtime/gpu/ncclcalls.h"
#include "runtime/gpu/ncclcomm.h"
#include "runtime/gpu/ncclerror.h"
#include "runtime/gpu/ncclguard.h"
#include "runtime/gpu/ncclinit.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

/* ---- queueing a call ---- */

/* In a call that blocks, NCCL may wait for a peer. Once the communicator has been stopped, the
 * thread that watches gates (gate.h) ends that wait. */
static ncclResult_t queue_watched(struct dt_ncclcomm *n, struct dt_ncclcall *call,
                                  const struct dt_operation *o)
{
    ncclResult_t queued;

    if (dt_nccl()->blocks)
        dt_gpu_watch(&n->watched);
    queued = dt_ncclcalls_queue(call, o);
    if (dt_nccl()->blocks)
        dt_gpu_unwatch(&n->watched);
    return queued;
}

/* Returns a state like dt_ncclcomm_state. name: as in struct dt_ncclcall. */
static ncclResult_t call_nccl(struct dt_ncclcomm *n, const struct dt_operation *o, CUstream stream,
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

static dt_result_t fail_allocation(struct dt_comm *c, size_t bytes, CUresult error)
{
    char function[48];

    snprintf(function, sizeof function, "cuMemAlloc for %zu bytes", bytes);
    return dt_gpu_coll_error(c, &c->coll_error, function, error);
}

/* NCCL has no all-to-all in place, so the input is set aside. */
static dt_result_t set_aside(struct dt_comm *c, struct dt_operation *o)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_ncclcomm *n = &c->gpu->nccl;
    size_t bytes = o->given.each * dt_dtype_size(o->dtype) * (size_t)c->size;
    CUdeviceptr scratch;
    CUresult result;

    if (o->kind->call != DT_CALL_ALL_TO_ALL || o->in != o->out || !bytes)
        return DT_OK;
    result = dt_ncclcomm_alloc_scratch(n, bytes, &scratch);
    if (result)
        return fail_allocation(c, bytes, result);
    result = cuda->cuMemcpyDtoDAsync_v2(scratch, (CUdeviceptr)(uintptr_t)o->in, bytes, n->stream);
    o->in = (const void *)(uintptr_t)scratch;
    return result ? dt_gpu_coll_error(c, &c->coll_error, "cuMemcpyDtoDAsync", result) : DT_OK;
}

static dt_result_t queue_nccl_call(struct dt_comm *c, struct dt_operation *o,
                                   struct dt_gpu_arrival *a, const char **name)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_ncclcomm *n = &c->gpu->nccl;
    CUresult result = dt_gpu_order_follow(&o->order, n->stream);
    dt_result_t r;
    ncclResult_t queued;

    if (result)
        return dt_gpu_coll_error(c, &c->coll_error, "cuStreamWaitEvent", result);
    result = cuda->cuEventRecord(n->begun, n->stream);
    if (result)
        return dt_gpu_coll_error(c, &c->coll_error, "cuEventRecord", result);
    r = set_aside(c, o);
    if (r != DT_OK)
        return r;
    dt_gpu_launch_begins(c, a);
    queued = call_nccl(n, o, n->stream, name);
    return dt_nccl_failed(queued) ? dt_ncclerror(c, *name, queued) : DT_OK;
}

struct launched_call {
    const struct dt_operation *o;
    struct dt_launchorder_call launch;
    struct dt_gpu_arrival arrival;
};

dt_result_t dt_nccl_await_turn(struct dt_comm *c, const struct dt_launchorder_call *launch)
{
    dt_result_t r = DT_OK;

    for (unsigned turn = 0; r == DT_OK && launch->stamp && !dt_launchorder_may(launch); turn++)
        r = dt_gpu_wait_on(c, NULL, turn);
    return r;
}

dt_result_t dt_nccl_check(struct dt_comm *c)
{
    ncclResult_t state = c->gpu->nccl.comm ? dt_ncclcomm_state(c) : ncclSuccess;

    return dt_nccl_failed(state) ? dt_ncclerror(c, "ncclCommGetAsyncError", state) : DT_OK;
}

dt_result_t dt_nccl_queue(struct dt_comm *c, const struct dt_operation *o, CUstream stream,
                          struct dt_gpu_arrival *a)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    const char *name;
    ncclResult_t state;
    dt_result_t r = DT_OK;

    dt_gpu_launch_begins(c, a);
    state = call_nccl(n, o, stream, &name);
    for (unsigned turn = 0; r == DT_OK; turn++) {
        if (dt_nccl_failed(state))
            return dt_ncclerror(c, name, state);
        state = dt_ncclcomm_state(c);
        if (state == ncclSuccess)
            break;
        r = dt_gpu_wait_on(c, a, turn);
    }
    if (r == DT_OK)
        dt_gpu_launch_ends(c, a);
    return r;
}

enum progress { WAITING, DONE, FAILED };

/* The event stands for the call only once NCCL has put its kernel on the stream. */
static CUresult record_done(const struct dt_ncclcomm *n, const struct dt_operation *o,
                            const char **function)
{
    const struct dt_ncclcall call = { .stream = n->stream, .rank = n->rank };
    CUresult result = dt_ncclcalls_finish(&call, o);

    *function = result ? "cuMemcpyDtoDAsync" : "cuEventRecord";
    return result ? result : dt_cuda()->cuEventRecord(n->done, n->stream);
}

static enum progress poll_event(struct dt_comm *c, struct launched_call *m)
{
    const struct dt_ncclcomm *n = &c->gpu->nccl;
    const char *function;
    CUresult result = CUDA_SUCCESS;

    if (m->arrival.launching) {
        dt_gpu_launch_ends(c, &m->arrival);
        result = record_done(n, m->o, &function);
    }
    if (!result) {
        function = "cuEventQuery";
        result = dt_cuda()->cuEventQuery(n->done);
    }
    if (result == CUDA_SUCCESS)
        return DONE;
    if (result == CUDA_ERROR_NOT_READY)
        return WAITING;
    dt_gpu_coll_error(c, &c->coll_error, function, result);
    return FAILED;
}

static enum progress poll_call(struct dt_comm *c, struct launched_call *m, const char *name)
{
    ncclResult_t state = dt_ncclcomm_state(c);

    if (state == ncclSuccess)
        return poll_event(c, m);
    if (state == ncclInProgress)
        return WAITING;
    dt_ncclerror(c, name, state);
    return FAILED;
}

static dt_result_t await_call(struct dt_comm *c, const char *name, struct launched_call *m)
{
    for (unsigned turn = 0;; turn++) {
        enum progress progress = poll_call(c, m, name);
        dt_result_t r;

        if (!m->arrival.launching) {
            dt_launchorder_end(&m->launch);
            dt_unlaunched_end(m->o->unlaunched);
        }
        if (progress != WAITING)
            return progress == DONE ? DT_OK : c->coll_error.code;
        r = dt_gpu_wait_on(c, &m->arrival, turn);
        if (r != DT_OK)
            return r;
    }
}

static dt_result_t make_nccl_call(struct dt_comm *c, void *arg)
{
    struct launched_call *m = arg;
    struct dt_operation o = *m->o;
    const char *name = "";
    dt_result_t r = dt_nccl_await_turn(c, &m->launch);

    c->shm.algorithm = "nccl";
    c->leaders.algorithm = NULL;
    m->arrival = (struct dt_gpu_arrival){ .begun = c->gpu->nccl.begun, .kind = o.kind->call };
    dt_gpu_provision_forbid(c);
    if (r == DT_OK)
        r = queue_nccl_call(c, &o, &m->arrival, &name);
    if (r == DT_OK)
        r = await_call(c, name, m);
    dt_gpu_provision_allow();
    if (r == DT_OK)
        dt_ncclcomm_free_scratch(&c->gpu->nccl);
    return r;
}

/* ---- calls that another thread launches ---- */

/* While a later call is being launched, NCCL reports ncclInProgress, which says nothing about this
 * one. */
static enum progress poll_direct(struct dt_comm *c, const struct dt_direct *d)
{
    ncclResult_t state;
    CUresult result;
    bool healthy;

    if (atomic_load(&d->state) == DT_DIRECT_LAUNCHING)
        return WAITING;
    state = d->result ? d->result : dt_ncclcomm_state(c);
    healthy = !dt_nccl_failed(state);
    result = d->error || !healthy ? d->error : dt_cuda()->cuEventQuery(d->done);
    if (healthy && !result)
        return DONE;
    if (result == CUDA_ERROR_NOT_READY)
        return WAITING;
    if (result)
        dt_gpu_coll_error(c, &c->coll_error, d->error ? d->name : "cuEventQuery", result);
    else
        dt_ncclerror(c, d->name, state);
    return FAILED;
}

static dt_result_t await_direct(struct dt_comm *c, void *arg)
{
    const struct dt_operation *o = arg;
    struct dt_gpu_arrival arrival = { .begun = o->direct->begun, .kind = o->kind->call };

    c->shm.algorithm = "nccl+stream";
    c->leaders.algorithm = NULL;
    for (unsigned turn = 0;; turn++) {
        enum progress progress = poll_direct(c, o->direct);
        dt_result_t r;

        if (progress != WAITING)
            return progress == DONE ? DT_OK : c->coll_error.code;
        arrival.launching = atomic_load(&o->direct->state) == DT_DIRECT_LAUNCHING;
        r = dt_gpu_wait_on(c, &arrival, turn);
        if (r != DT_OK)
            return r;
    }
}

static dt_result_t match_and_await(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_operation launched = *o;

    return dt_comm_match_then(c, o->kind->call, dt_gpu_call(o), await_direct, &launched);
}

/* ---- the order of calls ---- */

static dt_result_t agree_on_launch(struct dt_comm *c, struct dt_launchorder_call *launch)
{
    int64_t stamp;
    dt_result_t r;

    dt_launchorder_propose(launch, c->id);
    stamp = launch->stamp;
    r = dt_comm_all_reduce_words(c, DT_CALL_GPU_ORDER, &stamp, 1, DT_MAX);
    if (r == DT_OK)
        dt_launchorder_agree(launch, stamp);
    return r;
}

/* A program with one communicator launches in the order of its calls. Every other communicator
 * descends from DT_WORLD, so all ranks know that DT_WORLD was split when they next make a call on
 * it. */
bool dt_nccl_needs_agreement(const struct dt_comm *c)
{
    return c->id != 0 || c->world->was_split;
}

dt_result_t dt_nccl_agree(struct dt_comm *c, const struct dt_operation *o,
                          struct dt_launchorder_call *launch)
{
    dt_result_t r;

    if (!dt_nccl_needs_agreement(c))
        return DT_OK;
    r = dt_comm_match(c, o->kind->call, dt_gpu_call(o));
    return r == DT_OK ? agree_on_launch(c, launch) : r;
}

static dt_result_t match_and_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct launched_call m = { .o = o };
    dt_result_t r = dt_nccl_agree(c, o, &m.launch);

    if (r == DT_OK)
        r = dt_comm_match_then(c, o->kind->call, dt_gpu_call(o), make_nccl_call, &m);
    dt_launchorder_end(&m.launch);
    return r;
}

static dt_result_t make_in_context(struct dt_comm *c, const struct dt_operation *o)
{
    dt_result_t r = dt_ncclinit_connect(c, &o->order, c->rank, c->size);

    return r == DT_OK ? match_and_make(c, o) : r;
}

dt_result_t dt_nccl_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_ncclcomm *n = &c->gpu->nccl;
    struct dt_cuda_scope scope;
    CUresult result =
        dt_gpu_enter_made(&scope, n->comm ? n->context : NULL, n->life, o->order.context);
    dt_result_t r;

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    r = o->direct ? match_and_await(c, o) : make_in_context(c, o);
    dt_cuda_leave(&scope);
    if (r != DT_OK)
        dt_ncclcomm_abort(c);
    return r;
}
