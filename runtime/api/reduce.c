/* Public calls: reduce and reduce-scatter. */
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/comm/collective.h"
#include "runtime/kernels/dtype.h"

/* ---- reduce ---- */

static dt_result_t check_reduce(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    size_t bytes = o->count * dt_dtype_size(o->dtype);
    dt_result_t r = dt_check_root(name, o->root, size);

    if (o->in == DT_IN_PLACE && rank == o->root)
        o->in = o->out;
    if (r == DT_OK)
        r = dt_check_buffer(name, o->in, o->count, o->dtype);
    if (r == DT_OK)
        r = dt_check_op(name, o->dtype, o->op);
    if (r == DT_OK && rank == o->root)
        r = dt_check_buffer(name, o->out, o->count, o->dtype);
    if (r == DT_OK && rank == o->root)
        r = dt_check_apart(name, o->in, bytes, o->out, bytes, o->out);
    if (r != DT_OK || !o->count)
        return r;
    return dt_check_reduced_memory(o, o->in, rank == o->root ? o->out : NULL);
}

static dt_result_t make_reduce(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_reduce(c, o->in, o->out, o->count, o->dtype, o->op, o->root);
}

static struct dt_operation reduce_operation(dt_comm_t *comm, const void *in, void *out,
                                            size_t count, dt_dtype_t dtype, dt_op_t op, int root)
{
    static const struct dt_operation_kind kind = { "dt_reduce", DT_CALL_REDUCE, check_reduce,
                                                   make_reduce };

    return (struct dt_operation){ .kind = &kind,
                                  .comm = comm,
                                  .in = in,
                                  .out = out,
                                  .count = count,
                                  .dtype = dtype,
                                  .op = op,
                                  .root = root };
}

dt_result_t dt_reduce(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                      dt_op_t op, int root)
{
    struct dt_operation o = reduce_operation(comm, in, out, count, dtype, op, root);

    return dt_view_make(&o);
}

dt_result_t dt_ireduce(dt_comm_t *comm, const void *in, void *out, size_t count, dt_dtype_t dtype,
                       dt_op_t op, int root, dt_request_t *request)
{
    struct dt_operation o = reduce_operation(comm, in, out, count, dtype, op, root);

    return dt_view_start(&o, request);
}

/* ---- reduce-scatter ---- */

static dt_result_t check_reduce_scatter(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    dt_result_t r = dt_check_counts(name, o->kind->call, "counts", &o->given);
    size_t total;

    if (o->in == DT_IN_PLACE)
        o->in = o->out;
    if (r == DT_OK)
        r = dt_check_blocks(name, "counts", o->in, &o->given, size, o->dtype);
    if (r != DT_OK)
        return r;
    o->count = dt_blocks_count(&o->given, (uint32_t)rank);
    total = dt_blocks_bytes(&o->given, (uint32_t)size, o->dtype);
    r = dt_check_buffer(name, o->out, o->count, o->dtype);
    if (r == DT_OK)
        r = dt_check_op(name, o->dtype, o->op);
    if (r == DT_OK && o->out != dt_block_of(o->in, &o->given, (uint32_t)rank, o->dtype))
        r = dt_check_apart(name, o->in, total, o->out, o->count * dt_dtype_size(o->dtype), o->out);
    if (r != DT_OK)
        return r;
    return dt_check_reduced_memory(o, total ? o->in : NULL, o->count ? o->out : NULL);
}

static dt_result_t make_reduce_scatter(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_reduce_scatter(c, o->kind->call, o->in, o->out, &o->given, o->dtype, o->op);
}

static const struct dt_operation_kind reduce_scatter_kind = {
    "dt_reduce_scatter", DT_CALL_REDUCE_SCATTER, check_reduce_scatter, make_reduce_scatter
};
static const struct dt_operation_kind reduce_scatterv_kind = {
    "dt_reduce_scatterv", DT_CALL_REDUCE_SCATTERV, check_reduce_scatter, make_reduce_scatter
};

static struct dt_operation reduce_scatter_operation(const struct dt_operation_kind *kind,
                                                    dt_comm_t *comm, const void *in, void *out,
                                                    struct dt_blocks blocks, dt_dtype_t dtype,
                                                    dt_op_t op)
{
    return (struct dt_operation){
        .kind = kind, .comm = comm, .in = in, .out = out, .given = blocks, .dtype = dtype, .op = op
    };
}

dt_result_t dt_reduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, dt_op_t op)
{
    struct dt_operation o = reduce_scatter_operation(&reduce_scatter_kind, comm, in, out,
                                                     dt_blocks_each(count), dtype, op);

    return dt_view_make(&o);
}

dt_result_t dt_ireduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    struct dt_operation o = reduce_scatter_operation(&reduce_scatter_kind, comm, in, out,
                                                     dt_blocks_each(count), dtype, op);

    return dt_view_start(&o, request);
}

dt_result_t dt_reduce_scatterv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                               dt_dtype_t dtype, dt_op_t op)
{
    struct dt_operation o = reduce_scatter_operation(&reduce_scatterv_kind, comm, in, out,
                                                     dt_blocks_of(counts), dtype, op);

    return dt_view_make(&o);
}

dt_result_t dt_ireduce_scatterv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                                dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    struct dt_operation o = reduce_scatter_operation(&reduce_scatterv_kind, comm, in, out,
                                                     dt_blocks_of(counts), dtype, op);

    return dt_view_start(&o, request);
}
