/* Public calls: all-to-all. */
#include "runtime/comm/alltoall.h"
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/kernels/dtype.h"

static bool goes_in_place(const struct dt_operation *o)
{
    return o->in == DT_IN_PLACE || (o->in && o->in == o->out);
}

static dt_result_t check_all_to_all(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    bool in_place = goes_in_place(o);
    size_t gives, takes;
    dt_result_t r =
        in_place ? DT_OK : dt_check_counts(name, o->kind->call, "send_counts", &o->given);

    (void)rank;
    if (r == DT_OK)
        r = dt_check_counts(name, o->kind->call, "recv_counts", &o->taken);
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
    return dt_check_memory(o, gives ? o->in : NULL, takes ? o->out : NULL);
}

static dt_result_t make_all_to_all(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_all_to_all(c, o->kind->call, o->in, &o->given, o->out, &o->taken, o->dtype);
}

static const struct dt_operation_kind all_to_all_kind = { "dt_all_to_all", DT_CALL_ALL_TO_ALL,
                                                          check_all_to_all, make_all_to_all };
static const struct dt_operation_kind all_to_allv_kind = { "dt_all_to_allv", DT_CALL_ALL_TO_ALLV,
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
    struct dt_operation o = all_to_all_operation(&all_to_all_kind, comm, in, dt_blocks_each(count),
                                                 out, dt_blocks_each(count), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o = all_to_all_operation(&all_to_all_kind, comm, in, dt_blocks_each(count),
                                                 out, dt_blocks_each(count), dtype);

    return dt_view_start(&o, request);
}

dt_result_t dt_all_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts, void *out,
                           const size_t *recv_counts, dt_dtype_t dtype)
{
    struct dt_operation o =
        all_to_all_operation(&all_to_allv_kind, comm, in, dt_blocks_of(send_counts), out,
                             dt_blocks_of(recv_counts), dtype);

    return dt_view_make(&o);
}

dt_result_t dt_iall_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts, void *out,
                            const size_t *recv_counts, dt_dtype_t dtype, dt_request_t *request)
{
    struct dt_operation o =
        all_to_all_operation(&all_to_allv_kind, comm, in, dt_blocks_of(send_counts), out,
                             dt_blocks_of(recv_counts), dtype);

    return dt_view_start(&o, request);
}
