#include "runtime/api/allreduce.h"

#include "runtime/api/checks.h"
#include "runtime/api/context.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/kernels/dtype.h"

enum { FEW_BYTES = 4096 }; /* bytes up to which looking where buffers lie would cost too much */

static dt_result_t check_residual(const struct dt_operation *o)
{
    const float *residual = o->how.residual;
    size_t bytes = o->count * sizeof *residual;

    if (!o->count || !residual)
        return DT_OK;
    if (dt_buffers_overlap(residual, bytes, o->in, bytes) ||
        dt_buffers_overlap(residual, bytes, o->out, bytes))
        return dt_fail(DT_ERR_ARG, "%s: the residual overlaps in or out", o->kind->name);
    if (dt_memory_of(residual, residual) != DT_MEMORY_HOST)
        return dt_fail(DT_ERR_ARG, "%s: the residual must be in host memory", o->kind->name);
    return DT_OK;
}

static dt_result_t check_options(struct dt_operation *o)
{
    bool on_device = o->memory == DT_MEMORY_DEVICE;
    const dt_all_reduce_options_t *chosen;
    dt_result_t r;

    if (!o->options) {
        chosen = on_device ? NULL : dt_reduceoptions_default(o->count, o->dtype, o->op);
        if (chosen)
            o->how = *chosen;
        return DT_OK;
    }
    r = dt_reduceoptions_read(o->kind->name, o->options, o->count, o->dtype, o->op, on_device,
                              &o->how);
    return r == DT_OK ? check_residual(o) : r;
}

static dt_result_t check_adasum(const struct dt_operation *o, int size)
{
    const char *name = o->kind->name;

    if (!dt_dtype_is_float(o->dtype))
        return dt_fail(DT_ERR_ARG, "%s: adasum is for f16, bf16, f32 and f64, not for %s", name,
                       dt_dtype_name(o->dtype));
    if (size & (size - 1))
        return dt_fail(
            DT_ERR_ARG,
            "%s: adasum combines ranks in pairs, so their number must be a power of two, "
            "not %d; dt_comm_split can make a communicator of %d",
            name, size, 1 << (31 - __builtin_clz((unsigned)size)));
    return DT_OK;
}

static dt_result_t check_memory(struct dt_operation *o, size_t bytes)
{
    if (!bytes || (bytes <= FEW_BYTES && dt_memory_of_few(o->in, o->out) == DT_MEMORY_HOST))
        return DT_OK;
    return dt_check_reduced_memory(o, o->in, o->out);
}

static dt_result_t check_all_reduce(struct dt_operation *o, int rank, int size)
{
    size_t bytes = o->count * dt_dtype_size(o->dtype);
    const char *name = o->kind->name;
    dt_result_t r = dt_check_buffer(name, o->out, o->count, o->dtype);

    (void)rank;
    if (o->in == DT_IN_PLACE)
        o->in = o->out;
    if (r == DT_OK)
        r = o->op == DT_ADASUM ? check_adasum(o, size) : dt_check_op(name, o->dtype, o->op);
    if (r != DT_OK)
        return r;
    if (o->count && !o->in)
        return dt_fail(DT_ERR_ARG, "%s: no input was given (DT_IN_PLACE to use out)", name);
    if (o->in != o->out && dt_buffers_overlap(o->in, bytes, o->out, bytes))
        return dt_fail(DT_ERR_ARG, "%s: in and out overlap in part", name);
    r = check_memory(o, bytes);
    return r == DT_OK ? check_options(o) : r;
}

static dt_result_t make_all_reduce(struct dt_comm *c, const struct dt_operation *o)
{
    if (o->how.size)
        return dt_comm_all_reduce_with(c, o->in, o->out, o->count, o->dtype, o->op, &o->how,
                                       o->buffers);
    return dt_comm_all_reduce(c, o->in, o->out, o->count, o->dtype, o->op);
}

static const struct dt_operation_kind all_reduce_kind = { "dt_all_reduce", DT_CALL_ALL_REDUCE,
                                                          check_all_reduce, make_all_reduce };
static const struct dt_operation_kind all_reduce_with_kind = { "dt_all_reduce_with",
                                                               DT_CALL_ALL_REDUCE, check_all_reduce,
                                                               make_all_reduce };

static struct dt_operation all_reduce_operation(const struct dt_operation_kind *kind,
                                                dt_comm_t *comm, const void *in, void *out,
                                                size_t count, dt_dtype_t dtype, dt_op_t op,
                                                const dt_all_reduce_options_t *options)
{
    return (struct dt_operation){ .kind = kind,
                                  .comm = comm,
                                  .in = in,
                                  .out = out,
                                  .count = count,
                                  .dtype = dtype,
                                  .op = op,
                                  .options = options };
}

struct dt_operation dt_allreduce_in_place(dt_comm_t *comm, void *buf, size_t count,
                                          dt_dtype_t dtype, dt_op_t op)
{
    return all_reduce_operation(&all_reduce_kind, comm, DT_IN_PLACE, buf, count, dtype, op, NULL);
}

/* Returns whether the call needs no operation: its arguments are valid, its few bytes are in host
 * memory, and no options apply. Building an operation would take longer than these tests. */
static bool is_plain(const void *in, const void *out, size_t count, dt_dtype_t dtype, dt_op_t op)
{
    size_t bytes;

    if (!dt_op_applies(op, dtype) || count == 0 || count > FEW_BYTES)
        return false;
    bytes = count * dt_dtype_size(dtype);
    return bytes <= FEW_BYTES && in && out && in != DT_IN_PLACE && out != DT_IN_PLACE &&
           (in == out || !dt_buffers_overlap(in, bytes, out, bytes)) &&
           dt_memory_of_few(in, out) == DT_MEMORY_HOST &&
           !dt_reduceoptions_default(count, dtype, op);
}

/* A plain call is refused only if its communicator is not valid. Then it continues like any other
 * call, which reports why. */
dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype, dt_op_t op)
{
    struct dt_operation o;
    struct dt_comm *c;
    dt_result_t r;

    if (is_plain(in, out, count, dtype, op) &&
        dt_context_enter(all_reduce_kind.name, comm, &c) == DT_OK) {
        r = dt_comm_all_reduce(c, in, out, count, dtype, op);
        dt_context_leave(c);
        return r;
    }
    o = all_reduce_operation(&all_reduce_kind, comm, in, out, count, dtype, op, NULL);
    return dt_view_make(&o);
}

dt_result_t dt_iall_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    struct dt_operation o =
        all_reduce_operation(&all_reduce_kind, comm, in, out, count, dtype, op, NULL);

    return dt_view_start(&o, request);
}

dt_result_t dt_all_reduce_with(dt_comm_t *comm, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op, const dt_all_reduce_options_t *options)
{
    struct dt_operation o =
        all_reduce_operation(&all_reduce_with_kind, comm, in, out, count, dtype, op, options);

    return dt_view_make(&o);
}

dt_result_t dt_iall_reduce_with(dt_comm_t *comm, const void *in, void *out, size_t count,
                                dt_dtype_t dtype, dt_op_t op,
                                const dt_all_reduce_options_t *options, dt_request_t *request)
{
    struct dt_operation o =
        all_reduce_operation(&all_reduce_with_kind, comm, in, out, count, dtype, op, options);

    return dt_view_start(&o, request);
}
