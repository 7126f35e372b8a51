/* Public calls: broadcast. */
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"
#include "runtime/comm/collective.h"
#include "runtime/kernels/dtype.h"

static dt_result_t check_broadcast(struct dt_operation *o, int rank, int size)
{
    dt_result_t r = dt_check_buffer(o->kind->name, o->out, o->count, o->dtype);

    (void)rank;
    if (r == DT_OK)
        r = dt_check_root(o->kind->name, o->root, size);
    return r == DT_OK ? dt_check_memory(o, NULL, o->count ? o->out : NULL) : r;
}

static dt_result_t make_broadcast(struct dt_comm *c, const struct dt_operation *o)
{
    return dt_comm_broadcast(c, o->out, o->count, o->dtype, o->root);
}

static struct dt_operation broadcast_operation(dt_comm_t *comm, void *buf, size_t count,
                                               dt_dtype_t dtype, int root)
{
    static const struct dt_operation_kind kind = { "dt_broadcast", DT_CALL_BROADCAST,
                                                   check_broadcast, make_broadcast };

    return (struct dt_operation){
        .kind = &kind, .comm = comm, .out = buf, .count = count, .dtype = dtype, .root = root
    };
}

dt_result_t dt_broadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int root)
{
    struct dt_operation o = broadcast_operation(comm, buf, count, dtype, root);

    return dt_view_make(&o);
}

dt_result_t dt_ibroadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int root,
                          dt_request_t *request)
{
    struct dt_operation o = broadcast_operation(comm, buf, count, dtype, root);

    return dt_view_start(&o, request);
}
