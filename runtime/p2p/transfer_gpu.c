#include "runtime/p2p/transfer_gpu.h"

#include "runtime/base/clock.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"
#include "runtime/p2p/p2p.h"

enum { SLOT = 0 };

struct gpu_transfer {
    struct dt_p2p *channel;
    const struct dt_operation *o;
    struct dt_gpu_copying copying;
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
    const struct dt_gpu_copies *s = p->copying.copies;

    return queued ? fail_cuda(p->channel, s->failed, queued) : await_event(p, s->copied[SLOT]);
}

/* As dt_gpu_await_gates (gpu/devicecall.h). */
static dt_result_t follow_order(struct gpu_transfer *p)
{
    const struct dt_gpu_order *order = &p->o->order;
    CUresult result;

    if (p->copying.waits || dt_gpu_gate_another_is_shut(p->o->gate))
        return dt_gpu_order_await(order, await_event, p);
    result = dt_gpu_order_follow(order, p->copying.copies->stream);
    return result ? fail_cuda(p->channel, "cuStreamWaitEvent", result) : DT_OK;
}

static dt_result_t send_gpu(struct gpu_transfer *p)
{
    struct dt_gpu_copying *g = &p->copying;
    dt_result_t r =
        await_copy(p, dt_gpu_copies_fetch(g->copies, SLOT, g->host, p->o->out, p->bytes));

    if (r != DT_OK)
        return r;
    return dt_p2p_transfer(p->channel, g->host, p->o->count, p->o->dtype, p->watched);
}

static dt_result_t receive_gpu(struct gpu_transfer *p)
{
    struct dt_gpu_copying *g = &p->copying;
    dt_result_t r = dt_p2p_transfer(p->channel, g->host, p->o->count, p->o->dtype, p->watched);

    if (r != DT_OK)
        return r;
    return await_copy(p, dt_gpu_copies_store(g->copies, SLOT, p->o->out, g->host, p->bytes));
}

/* After a failure the copy's stream would have to be made again. The driver might then wait for a
 * stream of the program that never finishes. */
static dt_result_t transfer_in_context(struct gpu_transfer *p, struct dt_gpu_copies *copies)
{
    struct dt_p2p *ch = p->channel;
    dt_result_t r = dt_comm_check_stop(ch->comm, &ch->coll_error);
    CUresult result;

    if (r != DT_OK)
        return dt_p2p_fail(ch);
    result = dt_gpu_copying_begin(&p->copying, copies, p->o->order.context, p->bytes);
    if (result)
        return fail_cuda(ch, p->copying.failed, result);
    r = follow_order(p);
    if (r == DT_OK)
        r = ch->sending ? send_gpu(p) : receive_gpu(p);
    dt_gpu_copying_end(&p->copying, r != DT_OK);
    return r;
}

dt_result_t dt_p2p_transfer_gpu(struct dt_p2p *channel, struct dt_operation *o, uint32_t limit_ms,
                                bool watched)
{
    struct dt_gpu_copies *copies = o->gate ? o->copies : &channel->copies;
    struct gpu_transfer p = { .channel = channel,
                              .o = o,
                              .bytes = o->count * dt_dtype_size(o->dtype),
                              .limit_ms = limit_ms,
                              .watched = watched };
    struct dt_cuda_scope scope;
    CUresult result = dt_cuda_enter(&scope, o->order.context);
    dt_result_t r;

    if (result) {
        r = fail_cuda(channel, scope.failed, result);
    } else {
        r = transfer_in_context(&p, copies);
        dt_cuda_leave(&scope);
    }
    dt_gpu_order_drop(&o->order);
    return r;
}
