#include "runtime/api/enqueue.h"

#include "runtime/api/context.h"
#include "runtime/api/request.h"
#include "runtime/base/inflight.h"
#include "runtime/comm/async.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/slots.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/stream.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/direct.h"
#include "runtime/gpu/extents.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/launchorder.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/cudafail.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/kernels/dtype.h"

struct enqueued_call {
    const char *name;
    struct dt_operation *o;
    struct dt_gpu_stream *s;

    /* the communicator is not freed before the call has been executed */
    struct dt_comm *comm;
    struct dt_extents extents;
    bool direct;  /* this thread may pass the call to NCCL */
    bool staged;  /* the call needs pinned memory */
    size_t bytes; /* how much pinned memory it needs */
};

/* If NCCL's calls do not block, a thread of NCCL's launches them, in which CU_STREAM_PER_THREAD
 * would be another stream. */
static bool names_one_stream(const struct dt_gpu_stream *s)
{
    return s->stream != CU_STREAM_PER_THREAD || dt_nccl()->blocks;
}

static void visit_communicator(struct dt_comm *c, void *arg)
{
    struct enqueued_call *e = arg;

    e->comm = c;
    e->extents = dt_extents_of(e->o, c->rank, c->size);
    e->direct = !dt_operation_is_p2p(e->o) && dt_gpu_goes_direct(c, e->o, &e->o->ordered) &&
                names_one_stream(e->s);
    e->staged = !dt_operation_is_p2p(e->o) && dt_gpu_is_staged(c, e->o, &e->bytes);
}

/* Data must be in GPU memory. A call without data is made like one on managed memory: on the host,
 * after this rank has waited for its GPU. */
static dt_result_t check_memory(const struct enqueued_call *e)
{
    if (e->o->memory != DT_MEMORY_HOST)
        return DT_OK;
    if (e->extents.in + e->extents.out > 0)
        return dt_fail(
            DT_ERR_ARG,
            "%s: the buffers are in host memory, but a call on a stream needs buffers in "
            "the memory of its GPU",
            e->name);
    e->o->memory = DT_MEMORY_MANAGED;
    return DT_OK;
}

static dt_result_t reserve_pinned_for_p2p(const struct enqueued_call *e)
{
    struct dt_operation *o = e->o;
    int channel = 2 * o->root + (o->kind->call == DT_CALL_SEND);

    return dt_gpu_stream_channel(e->s, e->name, channel, 2 * e->comm->size,
                                 o->count * dt_dtype_size(o->dtype), &o->copies);
}

/* Reserves pinned memory now, since none can be allocated while the call holds the stream. */
static dt_result_t reserve_pinned(const struct enqueued_call *e)
{
    if (dt_operation_is_p2p(e->o))
        return reserve_pinned_for_p2p(e);
    if (e->staged)
        dt_gpu_copies_reserve(e->s->copies, e->bytes);
    return DT_OK;
}

static dt_result_t hold_stream(const struct enqueued_call *e)
{
    struct dt_operation *o = e->o;
    struct dt_buffer_pair b = dt_operation_gpu_buffers(o);
    dt_result_t r = dt_gpu_order_take_on(&o->order, e->name, &b, e->s);
    const char *function;
    CUresult result;

    if (r != DT_OK)
        return r;
    result = dt_gpu_gate_shut(&o->gate, e->s->stream, e->s->life, e->comm, &function);
    if (!result)
        return DT_OK;
    dt_gpu_order_drop(&o->order);
    return dt_cuda_fail(e->name, function, result);
}

static dt_result_t hold_and_submit(const struct enqueued_call *e, dt_request_t *request)
{
    dt_result_t r = hold_stream(e);

    if (r != DT_OK)
        return r;
    dt_inflight_begin(e->o->inflight);
    r = dt_request_submit(e->name, e->o, e->comm->size, request);
    if (r == DT_OK)
        return r;
    dt_inflight_end(e->o->inflight);
    dt_gpu_order_drop(&e->o->order);
    dt_gpu_gate_open(e->o->gate);
    return r;
}

/* ---- launches by this thread ---- */

static dt_result_t begin_direct(const struct enqueued_call *e)
{
    struct dt_operation *o = e->o;
    struct dt_buffer_pair b = dt_operation_gpu_buffers(o);
    dt_result_t r = dt_gpu_stream_check_capture(&e->s->stream, 1, e->name);
    const char *function;
    CUresult result;

    if (r == DT_OK)
        r = dt_gpu_order_check_on(&o->order, e->name, &b, e->s);
    if (r != DT_OK)
        return r;
    result = dt_direct_begin(e->comm, e->s->stream, &o->direct, &function);
    return result ? dt_cuda_fail(e->name, function, result) : DT_OK;
}

/* If another call must be made before this one, sets e->direct to false and does nothing else. */
static dt_result_t enqueue_direct(struct enqueued_call *e, dt_request_t *request)
{
    struct dt_operation *o = e->o;
    dt_result_t r = begin_direct(e);

    if (r != DT_OK)
        return r;
    dt_inflight_begin(o->inflight);
    r = dt_request_submit(e->name, o, e->comm->size, request);
    if (r == DT_OK) {
        dt_direct_launch(e->comm, o, e->s->stream);
        return r;
    }
    dt_inflight_end(o->inflight);
    dt_direct_cancel(e->comm, o->direct);
    o->direct = NULL;
    e->direct = r != DT_ERR_UNSUPPORTED;
    return r;
}

/* Calls that this thread has left to others come first. Nothing is queued on the stream meanwhile:
 * it may stand still behind one of them, and once its queue is full, the driver makes every thread
 * wait, also the one that makes that call. */
static void await_earlier(const struct enqueued_call *e)
{
    struct dt_async *own = &e->comm->slot->async;

    for (unsigned turn = 0; dt_unlaunched_any() || !dt_async_may_go_ahead(own); turn++) {
        if (dt_comm_stopped(e->comm))
            return;
        dt_gpu_pause(turn);
    }
}

static dt_result_t enqueue_in_order(struct enqueued_call *e, dt_request_t *request)
{
    for (;;) {
        dt_result_t r;

        await_earlier(e);
        e->direct = true;
        r = enqueue_direct(e, request);
        if (e->direct || dt_comm_stopped(e->comm))
            return r;
    }
}

/* ---- calls behind a gate ---- */

static dt_result_t enqueue_held(const struct enqueued_call *e, dt_request_t *request)
{
    dt_result_t r = reserve_pinned(e);

    return r == DT_OK ? hold_and_submit(e, request) : r;
}

static dt_result_t enqueue_in_context(struct enqueued_call *e, dt_request_t *request)
{
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, e->s->context);
    dt_result_t r;

    if (result)
        return dt_cuda_fail(e->name, scope.failed, result);
    if (e->direct)
        r = e->o->ordered ? enqueue_in_order(e, request) : enqueue_direct(e, request);
    if (!e->direct)
        r = enqueue_held(e, request);
    dt_cuda_leave(&scope);
    return r;
}

dt_result_t dt_enqueue(const char *name, struct dt_operation *o, struct dt_gpu_stream *s,
                       dt_request_t *request)
{
    struct enqueued_call e = { .name = name, .o = o, .s = s };
    dt_result_t r = dt_operation_check(o);

    if (r == DT_OK)
        r = dt_context_visit(name, o->comm, visit_communicator, &e);
    if (r != DT_OK)
        return r;
    r = check_memory(&e);
    if (r == DT_OK)
        r = enqueue_in_context(&e, request);
    return dt_operation_refuse(o, r);
}
