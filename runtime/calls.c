/* The public collectives: what they are given is checked, and goes to the ways of the host or of a
 * device. */
#include "runtime/checks.h"
#include "runtime/collective.h"
#include "runtime/context.h"
#include "runtime/dtype.h"
#include "runtime/reduceoptions.h"
#include "runtime/request.h"

static dt_result_t check_all_reduce(const void *in, const void *out, size_t count, dt_dtype_t dtype,
                                    dt_op_t op, enum dt_memory *memory)
{
    size_t bytes = count * dt_dtype_size(dtype);
    dt_result_t r = dt_check_buffer("dt_all_reduce", out, count, dtype);

    if (r == DT_OK)
        r = dt_check_op("dt_all_reduce", dtype, op);
    if (r != DT_OK)
        return r;
    if (count && !in)
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: no input was given (DT_IN_PLACE to use out)");
    if (in != out && dt_buffers_overlap(in, bytes, out, bytes))
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: in and out overlap in part");
    *memory = count ? dt_device_memory(in, out) : DT_MEMORY_HOST;
    if (*memory == DT_MEMORY_MIXED)
        return dt_fail(DT_ERR_ARG, "dt_all_reduce: one of in and out is GPU memory, the other is "
                                   "not");
    return DT_OK;
}

static dt_result_t check_residual(const float *residual, const void *in, const void *out,
                                  size_t count)
{
    size_t bytes = count * sizeof *residual;

    if (!count || !residual)
        return DT_OK;
    if (dt_buffers_overlap(residual, bytes, in, bytes) ||
        dt_buffers_overlap(residual, bytes, out, bytes))
        return dt_fail(DT_ERR_ARG, "dt_all_reduce_with: the residual overlaps in or out");
    if (dt_device_memory(residual, residual) != DT_MEMORY_HOST)
        return dt_fail(DT_ERR_ARG, "dt_all_reduce_with: the residual must be in host memory");
    return DT_OK;
}

dt_result_t dt_all_reduce_with(dt_comm_t *comm, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op, const dt_all_reduce_options_t *options)
{
    const void *from = in == DT_IN_PLACE ? out : in;
    const dt_all_reduce_options_t *how = dt_reduceoptions_default(count, dtype, op);
    dt_all_reduce_options_t given;
    enum dt_memory memory;
    struct dt_comm *c;
    dt_result_t r = check_all_reduce(from, out, count, dtype, op, &memory);

    if (r == DT_OK && options) {
        r = dt_reduceoptions_read(options, count, dtype, op, memory == DT_MEMORY_DEVICE, &given);
        how = &given;
    }
    if (r == DT_OK && how)
        r = check_residual(how->residual, from, out, count);
    if (r == DT_OK)
        r = dt_context_enter("dt_all_reduce", comm, &c);
    if (r != DT_OK)
        return r;
    if (memory == DT_MEMORY_DEVICE) {
        r = dt_comm_match(c, DT_CALL_ALL_REDUCE, count, dtype, op, -1);
        if (r == DT_OK)
            r = dt_device_all_reduce(&c->device, &c->device_host, from, out, count, dtype, op);
    } else if (how && (options || !c->uneven)) {
        r = dt_comm_all_reduce_with(c, from, out, count, dtype, op, how);
    } else {
        r = dt_comm_all_reduce(c, from, out, count, dtype, op);
    }
    dt_context_leave(c);
    return r;
}

dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype, dt_op_t op)
{
    return dt_all_reduce_with(comm, in, out, count, dtype, op, NULL);
}

static dt_result_t make_all_reduce(const struct dt_request_call *a)
{
    return dt_all_reduce(a->comm, a->in, a->out, a->count, a->dtype, a->op);
}

dt_result_t dt_iall_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    const struct dt_request_call call = { .make = make_all_reduce,
                                          .comm = comm,
                                          .in = in,
                                          .out = out,
                                          .count = count,
                                          .dtype = dtype,
                                          .op = op };
    enum dt_memory memory;
    dt_result_t r = check_all_reduce(in == DT_IN_PLACE ? out : in, out, count, dtype, op, &memory);

    return r == DT_OK ? dt_request_start("dt_iall_reduce", &call, request) : r;
}

dt_result_t dt_broadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int root)
{
    struct dt_comm *c;
    dt_result_t r = dt_check_buffer("dt_broadcast", buf, count, dtype);

    if (r == DT_OK)
        r = dt_context_enter("dt_broadcast", comm, &c);
    if (r != DT_OK)
        return r;
    r = dt_check_root("dt_broadcast", root, c->size);
    if (r != DT_OK) {
        dt_context_leave(c);
        return r;
    }
    if (count && dt_device_memory(buf, buf) == DT_MEMORY_DEVICE) {
        r = dt_comm_match(c, DT_CALL_BROADCAST, count, dtype, DT_SUM, root);
        if (r == DT_OK)
            r = dt_device_broadcast(&c->device, &c->device_host, buf, count, dtype, root);
    } else {
        r = dt_comm_broadcast(c, buf, count, dtype, root);
    }
    dt_context_leave(c);
    return r;
}

static dt_result_t make_broadcast(const struct dt_request_call *a)
{
    return dt_broadcast(a->comm, a->out, a->count, a->dtype, a->root);
}

dt_result_t dt_ibroadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int root,
                          dt_request_t *request)
{
    const struct dt_request_call call = { .make = make_broadcast,
                                          .comm = comm,
                                          .out = buf,
                                          .count = count,
                                          .dtype = dtype,
                                          .root = root };
    dt_result_t r = dt_check_buffer("dt_ibroadcast", buf, count, dtype);

    return r == DT_OK ? dt_request_start("dt_ibroadcast", &call, request) : r;
}

dt_result_t dt_barrier(dt_comm_t *comm)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_barrier", comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_comm_meet(c, DT_CALL_BARRIER);
    if (r == DT_OK && c->device.state)
        r = dt_device_barrier(&c->device);
    dt_context_leave(c);
    return r;
}
