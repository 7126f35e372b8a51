#include "runtime/api/operation.h"

#include "runtime/api/context.h"
#include "runtime/base/inflight.h"
#include "runtime/comm/async.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/gpu.h"
#include "runtime/p2p/p2p.h"
#include "runtime/p2p/transfer_gpu.h"

struct caller {
    int rank;
    int size;
};

static void visit_caller(struct dt_comm *c, void *arg)
{
    *(struct caller *)arg = (struct caller){ c->rank, c->size };
}

dt_result_t dt_operation_refuse(const struct dt_operation *o, dt_result_t r)
{
    return r == DT_OK ? r : dt_context_refuse(o->comm, o->kind->call, r);
}

static dt_result_t check_arguments(struct dt_operation *o, int rank, int size)
{
    return o->kind->check ? o->kind->check(o, rank, size) : DT_OK;
}

static dt_result_t find_caller_and_check(struct dt_operation *o, struct caller *p)
{
    dt_result_t r;

    *p = (struct caller){ 0 };
    r = dt_context_visit(o->kind->name, o->comm, visit_caller, p);
    if (r == DT_OK)
        r = check_arguments(o, p->rank, p->size);
    return dt_operation_refuse(o, r);
}

/* ---- the order of calls on GPU memory ---- */

/* A call on managed memory is made on the host, so its buffers may lie anywhere; one of them shows
 * which work of the GPU to wait for. */
struct dt_buffer_pair dt_operation_gpu_buffers(const struct dt_operation *o)
{
    struct dt_buffer_pair b = o->touched;

    if (o->memory != DT_MEMORY_MANAGED || !b.in || !b.out)
        return b;
    if (dt_memory_of(b.in, b.in) == DT_MEMORY_MANAGED)
        b.out = NULL;
    else
        b.in = NULL;
    return b;
}

static dt_result_t record_gpu_order(struct dt_operation *o)
{
    struct dt_buffer_pair b;

    if (o->memory == DT_MEMORY_HOST || o->order.context)
        return DT_OK;
    b = dt_operation_gpu_buffers(o);
    return dt_operation_refuse(o, dt_gpu_order_take(&o->order, o->kind->name, &b));
}

/* ---- sends and receives ---- */

static struct dt_p2p_end p2p_end(const struct dt_operation *o)
{
    return (struct dt_p2p_end){ o->root, o->kind->call == DT_CALL_SEND };
}

static dt_result_t transfer(struct dt_p2p *channel, struct dt_operation *o, uint32_t limit_ms,
                            bool watched)
{
    if (o->memory != DT_MEMORY_HOST)
        return dt_p2p_transfer_gpu(channel, o, limit_ms, watched);
    return dt_p2p_transfer(channel, o->out, o->count, o->dtype, watched);
}

static dt_result_t make_p2p(struct dt_operation *o)
{
    struct dt_p2p *channel;
    struct caller p;
    dt_result_t r = find_caller_and_check(o, &p);

    if (r == DT_OK)
        r = record_gpu_order(o);
    if (r != DT_OK)
        return r;
    r = dt_context_enter_channel(o->kind->name, o->comm, p2p_end(o), &channel);
    if (r != DT_OK) {
        dt_gpu_order_drop(&o->order);
        return r;
    }
    r = transfer(channel, o, channel->limit_ms, true);
    dt_context_leave_channel(channel);
    return r;
}

/* Once the stream goes on, the program may call dt_finalize, or ask dt_stream_wait for the result
 * of the enqueued call. */
static void open_gate(const struct dt_operation *o)
{
    if (o->inflight)
        dt_async_end_soon();
    if (o->gate)
        dt_gpu_gate_open(o->gate);
}

/* Only the stream waits for an enqueued call, so its limit starts now. */
static dt_result_t run_p2p(struct dt_operation *o, struct dt_task *task)
{
    struct dt_comm *c = task->channel->comm;
    dt_result_t r;

    task->channel->limit_ms = task->limit_ms;
    task->channel->since_ns = 0;
    r = transfer(task->channel, o, task->limit_ms, o->gate != NULL);
    open_gate(o); /* before the communicator may be freed */
    dt_inflight_end(&c->p2p_inflight);
    return r;
}

/* ---- collectives ---- */

/* The driver may block any thread that uses it: until the GPU has finished its work, or while a
 * queue is full that the program fills behind this call's gate. dt_comm_watch makes the limit of
 * calls apply to that, too. */
static dt_result_t make_collective(struct dt_comm *c, struct dt_operation *o)
{
    bool on_host = o->memory == DT_MEMORY_HOST;
    dt_result_t r;

    if (on_host && !o->gate)
        return o->kind->make(c, o);
    dt_comm_watch(c, true);
    r = on_host ? o->kind->make(c, o) : dt_gpu_make(c, o);
    dt_comm_watch(c, false);
    return r;
}

static dt_result_t make_checked_collective(struct dt_operation *o)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter(o->kind->name, o->comm, &c);

    if (r == DT_OK) {
        r = make_collective(c, o);
        dt_context_leave(c);
    }
    dt_gpu_order_drop(&o->order);
    return r;
}

dt_result_t dt_operation_make(struct dt_operation *o)
{
    struct dt_comm *c;
    dt_result_t r;

    if (dt_operation_is_p2p(o))
        return make_p2p(o);
    r = dt_context_enter(o->kind->name, o->comm, &c);
    if (r != DT_OK)
        return dt_operation_refuse(o, r);
    r = dt_operation_refuse(o, check_arguments(o, c->rank, c->size));
    if (r == DT_OK)
        r = record_gpu_order(o);
    if (r == DT_OK)
        r = make_collective(c, o);
    dt_context_leave(c);
    dt_gpu_order_drop(&o->order);
    /* a final failure has already been reported in full */
    return dt_result_is_final(r) ? r : dt_operation_refuse(o, r);
}

/* ---- nonblocking and enqueued calls ---- */

dt_result_t dt_operation_check(struct dt_operation *o)
{
    struct caller p;

    return find_caller_and_check(o, &p);
}

dt_result_t dt_operation_prepare(struct dt_operation *o)
{
    dt_result_t r = dt_operation_check(o);

    return r == DT_OK ? record_gpu_order(o) : r;
}

/* Errors of the check name the public call "name". Errors of recording the order name the kind's
 * own call: their causes are the same for both. */
dt_result_t dt_operation_prepare_as(struct dt_operation *o, const char *name, int *size)
{
    const struct dt_operation_kind *kind = o->kind;
    struct dt_operation_kind named = *kind;
    struct caller p;
    dt_result_t r;

    named.name = name;
    o->kind = &named;
    r = find_caller_and_check(o, &p);
    o->kind = kind;
    *size = p.size;
    return r == DT_OK ? record_gpu_order(o) : r;
}

dt_result_t dt_operation_submit(const char *name, const struct dt_operation *o,
                                struct dt_task *task)
{
    const struct dt_p2p_data data = { o->memory == DT_MEMORY_HOST ? o->out : NULL, o->count,
                                      o->dtype };

    if (dt_operation_is_p2p(o))
        return dt_context_submit_p2p(name, o->comm, p2p_end(o), &data, task);
    return dt_context_submit(name, o->comm, task);
}

static void visit_end_direct(struct dt_comm *c, void *direct)
{
    dt_direct_end(c, direct);
}

static dt_result_t run_collective(struct dt_operation *o)
{
    dt_result_t r = make_checked_collective(o);

    open_gate(o);
    if (o->direct)
        dt_context_visit(o->kind->name, o->comm, visit_end_direct, o->direct);
    return r;
}

dt_result_t dt_operation_run(struct dt_operation *o, struct dt_task *task)
{
    dt_result_t r = dt_operation_is_p2p(o) ? run_p2p(o, task) : run_collective(o);

    if (o->inflight)
        dt_inflight_end(o->inflight);
    return r;
}
