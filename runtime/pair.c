/* The public calls between two ranks. */
#include <stdlib.h>

#include "runtime/blame.h"
#include "runtime/checks.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/host/handover.h"
#include "runtime/host/movement.h"

/* Calls between two ranks are counted for each way between them: other ranks know nothing of
 * them. */
static bool count_ways(struct dt_comm *c)
{
    if (!c->sent)
        c->sent = calloc((size_t)c->size, sizeof *c->sent);
    if (!c->received)
        c->received = calloc((size_t)c->size, sizeof *c->received);
    return c->sent && c->received;
}

static dt_result_t check(const struct dt_comm *c, const char *name, const void *buf, size_t count,
                         dt_dtype_t dtype, int peer)
{
    dt_result_t r = dt_check_buffer(name, buf, count, dtype);

    if (r != DT_OK)
        return r;
    if (peer < 0 || peer >= c->size || peer == c->rank)
        return dt_fail(DT_ERR_ARG, "%s: peer %d is not another of the %d ranks", name, peer,
                       c->size);
    if (c->uneven || (count && dt_device_memory(buf, buf) == DT_MEMORY_DEVICE))
        return dt_fail(DT_ERR_UNSUPPORTED, "%s: not %s", name,
                       c->uneven ? "between dt_join_begin and dt_join" : "for device memory");
    return DT_OK;
}

static dt_result_t move(struct dt_comm *c, const struct dt_call *call, void *buf, int peer,
                        bool giving)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    int64_t local = dt_u32s_find(&c->locals, (uint32_t)peer);

    if (local >= 0)
        return giving ? dt_handover_give(&c->shm, call, buf, bytes, (uint32_t)local)
                      : dt_handover_take(&c->shm, call, buf, bytes, (uint32_t)local);
    return giving ? dt_movement_send(&c->mesh, call, buf, call->count, (uint32_t)peer)
                  : dt_movement_recv(&c->mesh, call, buf, call->count, (uint32_t)peer);
}

/* What the taker does has its own words. */
static void turn(struct dt_call *call, int giver)
{
    if (call->kind != DT_CALL_SEND)
        return;
    call->kind = DT_CALL_RECV;
    call->root = giver;
}

/* For the agent, which tells who waits for whom. */
static void note(struct dt_comm *c, const struct dt_call *call, int peer, bool giving,
                 unsigned inside)
{
    dt_hostshm_note_pair(&c->shm.map.ranks[c->local_rank], call->number, (uint32_t)peer,
                         inside | (giving ? DT_CALL_SEND : DT_CALL_RECV));
}

static dt_result_t pass(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype, int peer,
                        bool giving)
{
    int giver = giving ? c->rank : peer, taker = giving ? peer : c->rank;
    struct dt_call call = {
        .kind = DT_CALL_SEND, .count = count, .dtype = (uint8_t)dtype, .root = taker
    };
    dt_result_t r = dt_comm_check(c);

    if (r != DT_OK)
        return r;
    if (!count_ways(c))
        return dt_comm_fail(c, dt_fail(DT_ERR_NOMEM, "rank %d: out of memory", c->world->rank));
    call.number = giving ? ++c->sent[peer] : ++c->received[peer];
    note(c, &call, peer, giving, DT_HOSTSHM_INSIDE);
    r = move(c, &call, buf, peer, giving);
    note(c, &call, peer, giving, 0);
    if (r == DT_OK)
        return r;
    turn(giving ? &c->trouble.theirs : &call, giver);
    return dt_comm_fail(c, dt_blame(c, &call));
}

dt_result_t dt_send(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype, int peer)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_send", comm, &c);

    if (r != DT_OK)
        return r;
    r = check(c, "dt_send", buf, count, dtype, peer);
    if (r == DT_OK)
        r = pass(c, (void *)(uintptr_t)buf, count, dtype, peer, true);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_recv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_recv", comm, &c);

    if (r != DT_OK)
        return r;
    r = check(c, "dt_recv", buf, count, dtype, peer);
    if (r == DT_OK)
        r = pass(c, buf, count, dtype, peer, false);
    dt_context_leave(c);
    return r;
}
