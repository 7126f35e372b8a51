/* Public calls: all-gather. */
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/comm/collective.h"
#include "runtime/kernels/dtype.h"

static dt_result_t check_all_gather(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    dt_result_t r = dt_check_counts(name, o->kind->call, "counts", &o->taken);
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
    return dt_check_memory(o, mine ? o->in : NULL, total ? o->out : NULL);
}

static dt_result_t make_all_gather(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_all_gather(c, o->kind->call, o->in, o->out, &o->taken, o->dtype);
}

static const struct dt_operation_kind all_gather_kind = { "dt_all_gather", DT_CALL_ALL_GATHER,
                                                          check_all_gather, make_all_gather };
static const struct dt_operation_kind all_gatherv_kind = { "dt_all_gatherv", DT_CALL_ALL_GATHERV,
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
        all_gather_operation(&all_gather_kind, comm, in, out, dt_blocks_each(count), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o =
        all_gather_operation(&all_gather_kind, comm, in, out, dt_blocks_each(count), dtype);

    return dt_view_start(&o, request);
}

dt_result_t dt_all_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                           dt_dtype_t dtype)
{
    struct dt_operation o =
        all_gather_operation(&all_gatherv_kind, comm, in, out, dt_blocks_of(counts), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                            dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o =
        all_gather_operation(&all_gatherv_kind, comm, in, out, dt_blocks_of(counts), dtype);

    return dt_view_start(&o, request);
}
