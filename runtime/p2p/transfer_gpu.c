#include "runtime/p2p/transfer_gpu.h"

#include "runtime/base/clock.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/pinned.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"
#include "runtime/p2p/p2p.h"

enum { SLOT = 0 };

struct gpu_transfer {
    struct dt_p2p *channel;
    struct dt_gpu_copies *copies;
    const struct dt_operation *o;
    uint8_t *pinned;
    size_t bytes;
    uint32_t limit_ms;
    bool watched;
};

static dt_result_t fail_cuda(struct dt_p2p *ch, const char *function, CUresult error)
{
    dt_gpu_coll_error(ch->comm, &ch->coll_error, function, error);
    return dt_p2p_fail(ch);
}

static dt_result_t await_event(void *transfer, CUevent event)
{
    const struct gpu_transfer *p = transfer;
    struct dt_p2p *ch = p->channel;
    bool limited = p->limit_ms && p->limit_ms != DT_HOSTSHM_NO_LIMIT;
    uint64_t until = limited ? dt_clock_ns() + (uint64_t)p->limit_ms * 1000000 : 0;

    if (dt_gpu_await(ch->comm, &ch->coll_error, event, until) == DT_OK)
        return DT_OK;
    return dt_p2p_fail(ch);
}

static dt_result_t await_copy(struct gpu_transfer *p, CUresult queued)
{
    return queued ? fail_cuda(p->channel, "cuMemcpyAsync", queued)
                  : await_event(p, p->copies->copied[SLOT]);
}

/* As dt_gpu_await_gates (gpu/devicecall.h). */
static dt_result_t await_gates(struct gpu_transfer *p)
{
    return dt_gpu_gate_another_is_shut(p->o->gate)
               ? dt_gpu_order_await(&p->o->order, await_event, p)
               : DT_OK;
}

static dt_result_t send_gpu(struct gpu_transfer *p)
{
    dt_result_t r =
        await_copy(p, dt_gpu_copies_fetch(p->copies, SLOT, p->pinned, p->o->out, p->bytes));

    if (r != DT_OK)
        return r;
    return dt_p2p_transfer(p->channel, p->pinned, p->o->count, p->o->dtype, p->watched);
}

static dt_result_t receive_gpu(struct gpu_transfer *p)
{
    dt_result_t r = dt_p2p_transfer(p->channel, p->pinned, p->o->count, p->o->dtype, p->watched);

    if (r != DT_OK)
        return r;
    return await_copy(p, dt_gpu_copies_store(p->copies, SLOT, p->o->out, p->pinned, p->bytes));
}

/* After a failure the copy's stream would have to be made again. The driver might then wait for a
 * stream of the program that never finishes. */
static dt_result_t check_stopped(struct dt_p2p *ch)
{
    uint32_t culprit;
    int stopped = dt_comm_stopped(ch->comm, &culprit);

    if (!stopped)
        return DT_OK;
    dt_coll_error(&ch->coll_error, (dt_result_t)stopped, culprit);
    return dt_p2p_fail(ch);
}

static dt_result_t transfer_in_context(struct gpu_transfer *p)
{
    dt_result_t r = check_stopped(p->channel);
    CUresult result;

    if (r == DT_OK)
        r = await_gates(p);
    if (r != DT_OK)
        return r;
    result = dt_gpu_copies_open(p->copies, p->o->order.context);
    if (!result)
        result = dt_gpu_order_follow(&p->o->order, p->copies->stream);
    if (result)
        return fail_cuda(p->channel, "cuStreamCreate", result);
    p->pinned = dt_pinned_take(p->bytes, p->copies);
    if (!p->pinned)
        return fail_cuda(p->channel, "cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
    r = p->channel->sending ? send_gpu(p) : receive_gpu(p);
    dt_gpu_copies_settle(p->copies, p->pinned, r != DT_OK);
    return r;
}

dt_result_t dt_p2p_transfer_gpu(struct dt_p2p *channel, struct dt_operation *o, uint32_t limit_ms,
                                bool watched)
{
    struct gpu_transfer p = { .channel = channel,
                              .copies = o->copies ? o->copies : &channel->copies,
                              .o = o,
                              .bytes = o->count * dt_dtype_size(o->dtype),
                              .limit_ms = limit_ms,
                              .watched = watched };
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, o->order.context);
    dt_result_t r;

    if (result) {
        r = fail_cuda(channel, "cuCtxPushCurrent", result);
    } else {
        r = transfer_in_context(&p);
        dt_cuda_leave(&scope);
    }
    dt_gpu_order_drop(&o->order);
    return r;
}
