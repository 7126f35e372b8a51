/* The public send and receive. */
#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/api/view.h"

/* The operation's root is the peer, and its out the buffer. */
static dt_result_t check_p2p(struct dt_operation *o, int rank, int size)
{
    const char *name = o->kind->name;
    dt_result_t r = dt_check_buffer(name, o->out, o->count, o->dtype);

    if (r != DT_OK)
        return r;
    (void)rank;
    if (o->root < 0 || o->root >= size)
        return dt_fail(DT_ERR_ARG, "%s: peer %d is not one of the %d ranks", name, o->root, size);
    return dt_check_memory(o, NULL, o->count ? o->out : NULL);
}

static struct dt_operation send_operation(dt_comm_t *comm, const void *buf, size_t count,
                                          dt_dtype_t dtype, int peer)
{
    static const struct dt_operation_kind kind = { .name = "dt_send",
                                                   .call = DT_CALL_SEND,
                                                   .check = check_p2p };

    return (struct dt_operation){ .kind = &kind,
                                  .comm = comm,
                                  .out = (void *)(uintptr_t)buf,
                                  .count = count,
                                  .dtype = dtype,
                                  .root = peer };
}

static struct dt_operation recv_operation(dt_comm_t *comm, void *buf, size_t count,
                                          dt_dtype_t dtype, int peer)
{
    static const struct dt_operation_kind kind = { .name = "dt_recv",
                                                   .call = DT_CALL_RECV,
                                                   .check = check_p2p };

    return (struct dt_operation){
        .kind = &kind, .comm = comm, .out = buf, .count = count, .dtype = dtype, .root = peer
    };
}

dt_result_t dt_send(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype, int peer)
{
    struct dt_operation o = send_operation(comm, buf, count, dtype, peer);

    return dt_view_make(&o);
}

dt_result_t dt_isend(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_request_t *request)
{
    struct dt_operation o = send_operation(comm, buf, count, dtype, peer);

    return dt_view_start(&o, request);
}

dt_result_t dt_recv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer)
{
    struct dt_operation o = recv_operation(comm, buf, count, dtype, peer);

    return dt_view_make(&o);
}

dt_result_t dt_irecv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_request_t *request)
{
    struct dt_operation o = recv_operation(comm, buf, count, dtype, peer);

    return dt_view_start(&o, request);
}
