#include "runtime/collective.h"

#include <string.h>

#include "runtime/dtype.h"

static dt_result_t all_reduce(struct dt_comm *c, const struct dt_call *call, const void *in,
                              void *out)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    int divisor = call->op == DT_AVG ? c->size : 1;
    dt_result_t r;

    if (c->size == 1) {
        if (bytes && in != out)
            memcpy(out, in, bytes);
        return DT_OK;
    }
    if (c->nodes == 1)
        return dt_shm_all_reduce(&c->shm, call, in, out);
    if (c->local_size == 1)
        return dt_lanes_all_reduce(&c->lanes, call, in, out, call->count, divisor);
    r = dt_shm_reduce(&c->shm, call, in, out, 0, 1);
    if (r == DT_OK && dt_comm_leads(c))
        r = dt_lanes_all_reduce(&c->lanes, call, out, out, call->count, divisor);
    return r == DT_OK ? dt_shm_share(&c->shm, out, bytes, 0) : r;
}

dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op)
{
    struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .root = -1
    };
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_ALL_REDUCE);

    return r == DT_OK ? dt_comm_end(c, &call, all_reduce(c, &call, in, out)) : r;
}

dt_result_t dt_comm_show(struct dt_comm *c, enum dt_call_kind kind, void *table, size_t bytes)
{
    struct dt_call call = {
        .count = (size_t)c->size * bytes / 8, .dtype = DT_U64, .op = DT_BOR, .root = -1
    };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, all_reduce(c, &call, table, table)) : r;
}

/* Root's host has it from root; the leaders pass it on; every other host has it from its leader. */
static dt_result_t broadcast(struct dt_comm *c, const struct dt_call *call, void *buf, size_t bytes)
{
    uint32_t root = (uint32_t)call->root;
    uint32_t home;
    dt_result_t r;

    if (c->size == 1)
        return DT_OK;
    r = dt_shm_begin(&c->shm, call);
    home = c->node_of[root];
    if (r == DT_OK && c->node == home)
        r = dt_shm_share(&c->shm, buf, bytes, (uint32_t)dt_u32s_find(&c->locals, root));
    if (r == DT_OK && dt_comm_leads(c))
        r = dt_lanes_broadcast(&c->lanes, call, buf, bytes, home);
    if (r == DT_OK && c->node != home)
        r = dt_shm_share(&c->shm, buf, bytes, 0);
    return r;
}

dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root)
{
    struct dt_call call = { .count = count, .dtype = (uint8_t)dtype, .root = root };
    size_t bytes = count * dt_dtype_size(dtype);
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_BROADCAST);

    return r == DT_OK ? dt_comm_end(c, &call, broadcast(c, &call, buf, bytes)) : r;
}

static dt_result_t meet(struct dt_comm *c, const struct dt_call *call)
{
    dt_result_t r = dt_shm_begin(&c->shm, call);

    if (r == DT_OK && dt_comm_leads(c))
        r = dt_lanes_barrier(&c->lanes, call);
    if (r == DT_OK && c->nodes > 1)
        r = dt_shm_share(&c->shm, NULL, 0, 0);
    return r;
}

dt_result_t dt_comm_meet(struct dt_comm *c, enum dt_call_kind kind)
{
    struct dt_call call = { .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, meet(c, &call)) : r;
}

dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, size_t count, dt_dtype_t dtype,
                          dt_op_t op, int root)
{
    struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .device = 1, .root = root
    };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, meet(c, &call)) : r;
}
