/* Public collectives without a root in which ranks get different results. */
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/comm/alltoall.h"
#include "runtime/comm/collective.h"
#include "runtime/kernels/dtype.h"

/* ---- reduce and reduce-scatter ---- */

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
    return dt_check_memory(name, o->in, rank == o->root ? o->out : NULL, &o->memory);
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

static dt_result_t check_counts(const struct dt_operation *o, const struct dt_blocks *blocks,
                                const char *what)
{
    bool varied = dt_call_traits(o->kind->call) & DT_CALL_VARIED;

    return varied ? dt_check_counts(o->kind->name, what, blocks) : DT_OK;
}

static dt_result_t check_reduce_scatter(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    dt_result_t r = check_counts(o, &o->given, "counts");
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
    return dt_check_memory(name, total ? o->in : NULL, o->count ? o->out : NULL, &o->memory);
}

static dt_result_t make_reduce_scatter(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_reduce_scatter(c, o->kind->call, o->in, o->out, &o->given, o->dtype, o->op);
}

static const struct dt_operation_kind dti_reduce_scatter = {
    "dt_reduce_scatter", DT_CALL_REDUCE_SCATTER, check_reduce_scatter, make_reduce_scatter
};
static const struct dt_operation_kind dti_reduce_scatterv = {
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
    struct dt_operation o = reduce_scatter_operation(&dti_reduce_scatter, comm, in, out,
                                                     dt_blocks_each(count), dtype, op);

    return dt_view_make(&o);
}

dt_result_t dt_ireduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    struct dt_operation o = reduce_scatter_operation(&dti_reduce_scatter, comm, in, out,
                                                     dt_blocks_each(count), dtype, op);

    return dt_view_start(&o, request);
}

dt_result_t dt_reduce_scatterv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                               dt_dtype_t dtype, dt_op_t op)
{
    struct dt_operation o = reduce_scatter_operation(&dti_reduce_scatterv, comm, in, out,
                                                     dt_blocks_of(counts), dtype, op);

    return dt_view_make(&o);
}

dt_result_t dt_ireduce_scatterv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                                dt_dtype_t dtype, dt_op_t op, dt_request_t *request)
{
    struct dt_operation o = reduce_scatter_operation(&dti_reduce_scatterv, comm, in, out,
                                                     dt_blocks_of(counts), dtype, op);

    return dt_view_start(&o, request);
}

/* ---- all-gather and all-to-all ---- */

static dt_result_t check_all_gather(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    dt_result_t r = check_counts(o, &o->taken, "counts");
    const void *place;
    size_t total, mine;

    if (r == DT_OK)
        r = dt_check_blocks(name, "counts", o->out, &o->taken, size, o->dtype);
    if (r != DT_OK)
        return r;
    place = dt_block_of(o->out, &o->taken, (uint32_t)rank, o->dtype);
    total = dt_blocks_bytes(&o->taken, (uint32_t)size, o->dtype);
    mine = dt_blocks_count(&o->taken, (uint32_t)rank);
    o->in = o->in == DT_IN_PLACE ? place : o->in;
    r = dt_check_buffer(name, o->in, mine, o->dtype);
    if (r == DT_OK)
        r = dt_check_apart(name, o->in, mine * dt_dtype_size(o->dtype), o->out, total, place);
    if (r != DT_OK)
        return r;
    return dt_check_memory(name, mine ? o->in : NULL, total ? o->out : NULL, &o->memory);
}

static dt_result_t make_all_gather(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_all_gather(c, o->kind->call, o->in, o->out, &o->taken, o->dtype);
}

static const struct dt_operation_kind dti_all_gather = { "dt_all_gather", DT_CALL_ALL_GATHER,
                                                         check_all_gather, make_all_gather };
static const struct dt_operation_kind dti_all_gatherv = { "dt_all_gatherv", DT_CALL_ALL_GATHERV,
                                                          check_all_gather, make_all_gather };

static struct dt_operation all_gather_operation(const struct dt_operation_kind *kind,
                                                dt_comm_t *comm, const void *in, void *out,
                                                struct dt_blocks blocks, dt_dtype_t dtype)
{
    return (struct dt_operation){
        .kind = kind, .comm = comm, .in = in, .out = out, .taken = blocks, .dtype = dtype
    };
}

dt_result_t dt_all_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype)
{
    struct dt_operation o =
        all_gather_operation(&dti_all_gather, comm, in, out, dt_blocks_each(count), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o =
        all_gather_operation(&dti_all_gather, comm, in, out, dt_blocks_each(count), dtype);

    return dt_view_start(&o, request);
}

dt_result_t dt_all_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                           dt_dtype_t dtype)
{
    struct dt_operation o =
        all_gather_operation(&dti_all_gatherv, comm, in, out, dt_blocks_of(counts), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                            dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o =
        all_gather_operation(&dti_all_gatherv, comm, in, out, dt_blocks_of(counts), dtype);

    return dt_view_start(&o, request);
}

static bool goes_in_place(const struct dt_operation *o)
{
    return o->in == DT_IN_PLACE || (o->in && o->in == o->out);
}

static dt_result_t check_all_to_all(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    bool in_place = goes_in_place(o);
    size_t gives, takes;
    dt_result_t r = in_place ? DT_OK : check_counts(o, &o->given, "send_counts");

    (void)rank;
    if (r == DT_OK)
        r = check_counts(o, &o->taken, "recv_counts");
    if (in_place) {
        o->in = o->out;
        o->given = o->taken;
    }
    if (r == DT_OK)
        r = dt_check_blocks(name, "send counts", o->in, &o->given, size, o->dtype);
    if (r == DT_OK)
        r = dt_check_blocks(name, "receive counts", o->out, &o->taken, size, o->dtype);
    if (r != DT_OK)
        return r;
    gives = dt_blocks_bytes(&o->given, (uint32_t)size, o->dtype);
    takes = dt_blocks_bytes(&o->taken, (uint32_t)size, o->dtype);
    r = dt_check_apart(name, o->in, gives, o->out, takes, in_place ? o->out : NULL);
    if (r != DT_OK)
        return r;
    return dt_check_memory(name, gives ? o->in : NULL, takes ? o->out : NULL, &o->memory);
}

static dt_result_t make_all_to_all(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_all_to_all(c, o->kind->call, o->in, &o->given, o->out, &o->taken, o->dtype);
}

static const struct dt_operation_kind dti_all_to_all = { "dt_all_to_all", DT_CALL_ALL_TO_ALL,
                                                         check_all_to_all, make_all_to_all };
static const struct dt_operation_kind dti_all_to_allv = { "dt_all_to_allv", DT_CALL_ALL_TO_ALLV,
                                                          check_all_to_all, make_all_to_all };

static struct dt_operation all_to_all_operation(const struct dt_operation_kind *kind,
                                                dt_comm_t *comm, const void *in,
                                                struct dt_blocks given, void *out,
                                                struct dt_blocks taken, dt_dtype_t dtype)
{
    return (struct dt_operation){ .kind = kind,
                                  .comm = comm,
                                  .in = in,
                                  .out = out,
                                  .given = given,
                                  .taken = taken,
                                  .dtype = dtype };
}

dt_result_t dt_all_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                          dt_dtype_t dtype)
{
    struct dt_operation o = all_to_all_operation(&dti_all_to_all, comm, in, dt_blocks_each(count),
                                                 out, dt_blocks_each(count), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o = all_to_all_operation(&dti_all_to_all, comm, in, dt_blocks_each(count),
                                                 out, dt_blocks_each(count), dtype);

    return dt_view_start(&o, request);
}

dt_result_t dt_all_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts, void *out,
                           const size_t *recv_counts, dt_dtype_t dtype)
{
    struct dt_operation o =
        all_to_all_operation(&dti_all_to_allv, comm, in, dt_blocks_of(send_counts), out,
                             dt_blocks_of(recv_counts), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts, void *out,
                            const size_t *recv_counts, dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o =
        all_to_all_operation(&dti_all_to_allv, comm, in, dt_blocks_of(send_counts), out,
                             dt_blocks_of(recv_counts), dtype);

    return dt_view_start(&o, request);
}
