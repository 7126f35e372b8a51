/* Public calls: barrier. */
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/comm/collective.h"

static dt_result_t make_barrier(struct dt_comm *c, const struct dt_operation *o)
{
    (void)o;
    return dt_comm_barrier(c, DT_CALL_BARRIER);
}

static struct dt_operation barrier_operation(dt_comm_t *comm)
{
    static const struct dt_operation_kind kind = { "dt_barrier", DT_CALL_BARRIER, NULL,
                                                   make_barrier };

    return (struct dt_operation){ .kind = &kind, .comm = comm };
}

dt_result_t dt_barrier(dt_comm_t *comm)
{
    struct dt_operation o = barrier_operation(comm);

    return dt_view_make(&o);
}

dt_result_t dt_ibarrier(dt_comm_t *comm, dt_request_t *request)
{
    struct dt_operation o = barrier_operation(comm);

    return dt_view_start(&o, request);
}
