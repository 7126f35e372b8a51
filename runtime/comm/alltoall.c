#include "runtime/comm/alltoall.h"

#include <stdlib.h>

#include "runtime/base/copy.h"
#include "runtime/base/count_check.h"
#include "runtime/shm/alltoall.h"
#include "runtime/tcp/alltoall.h"

/* Counts that may differ between ranks are left out: the algorithm compares them. */
static struct dt_call make_call(const struct dt_blocks *blocks, dt_dtype_t dtype, int root)
{
    return (struct dt_call){ .count = blocks->counts ? 0 : blocks->each,
                             .dtype = (uint8_t)dtype,
                             .root = root };
}

/* Called after blocks have moved within each host. Each host's *count_check is the sum of its
 * ranks' checks (count_check.h); it becomes the sum over all ranks, which tells every rank whether
 * all counts agree. */
static dt_result_t sum_count_checks(struct dt_comm *c, const struct dt_call *call,
                                    uint64_t *count_check)
{
    dt_result_t r =
        dt_comm_leads(c) ? dt_leaders_barrier_sum(&c->leaders, call, count_check) : DT_OK;

    return r == DT_OK ? dt_shm_broadcast(&c->shm, count_check, sizeof *count_check, 0) : r;
}

/* Runs after the blocks have moved. If the sum shows a mismatch, ranks whose own counts agree wait
 * here until a rank that has found it reports it. */
static dt_result_t await_mismatch(struct dt_comm *c, uint64_t count_check)
{
    dt_result_t r = count_check ? dt_alarm_await(&c->mesh.alarm, DT_ALARM_TOLD_MS) : DT_OK;

    return count_check && r == DT_OK
               ? dt_coll_error(&c->coll_error, DT_ERR_MISMATCH, (uint32_t)c->world->rank)
               : r;
}

/* A rank's block for itself is not sent, so its counts are compared here. */
static dt_result_t check_own_block(struct dt_comm *c, uint64_t given, uint64_t expected)
{
    uint32_t me = (uint32_t)c->world->rank;

    if (given == expected)
        return DT_OK;
    dt_coll_error(&c->coll_error, DT_ERR_MISMATCH, me);
    c->coll_error.giver = c->coll_error.taker = me;
    c->coll_error.given = given;
    c->coll_error.expected = expected;
    return DT_ERR_MISMATCH;
}

static uint64_t count_check_of_all_to_all(const struct dt_comm *c, const struct dt_blocks *given,
                                          const struct dt_blocks *taken)
{
    uint32_t me = (uint32_t)c->rank, n = (uint32_t)c->size;

    return dt_count_check_blocks(me, n, given, true) + dt_count_check_blocks(me, n, taken, false) +
           dt_count_check_one(me, me, dt_blocks_count(given, (uint32_t)c->rank), true) +
           dt_count_check_one(me, me, dt_blocks_count(taken, (uint32_t)c->rank), false);
}

static uint64_t count_check_of_rooted(const struct dt_comm *c, const struct dt_rooted *g)
{
    uint32_t me = (uint32_t)c->rank;

    return me == g->root ? dt_count_check_blocks(me, (uint32_t)c->size, g->blocks, !g->gathers)
                         : dt_count_check_one(me, g->root, g->count, g->gathers);
}

dt_result_t dt_comm_all_to_all_within(struct dt_comm *c, const struct dt_call *call, const void *in,
                                      const struct dt_blocks *given, void *out,
                                      const struct dt_blocks *taken)
{
    uint64_t count_check;
    dt_result_t r;

    if (c->nodes == 1)
        return dt_shm_all_to_all(&c->shm, call, in, given, out, taken, NULL);
    count_check = count_check_of_all_to_all(c, given, taken);
    r = dt_shm_all_to_all(&c->shm, call, in, given, out, taken,
                          &(struct dt_shm_local){ c->locals.v, &count_check });
    if (r == DT_OK)
        r = sum_count_checks(c, call, &count_check);
    if (r == DT_OK)
        r = check_own_block(c, dt_blocks_count(given, (uint32_t)c->rank),
                            dt_blocks_count(taken, (uint32_t)c->rank));
    if (r == DT_OK)
        r = dt_tcp_all_to_all(&c->mesh, call, in, given, out, taken);
    return r == DT_OK ? await_mismatch(c, count_check) : r;
}

/* For buffers that overlap: the input is copied before the output overwrites it. */
static dt_result_t all_to_all_from_copy(struct dt_comm *c, const struct dt_call *call, void *buf,
                                        const struct dt_blocks *blocks)
{
    size_t bytes = dt_blocks_bytes(blocks, (uint32_t)c->size, (dt_dtype_t)call->dtype);
    void *in = malloc(bytes + 1);
    dt_result_t r;

    if (!in)
        return dt_comm_no_memory(c);
    dt_copy(in, buf, bytes);
    r = dt_comm_all_to_all_within(c, call, in, blocks, buf, blocks);
    free(in);
    return r;
}

dt_result_t dt_comm_all_to_all(struct dt_comm *c, enum dt_call_kind kind, const void *in,
                               const struct dt_blocks *given, void *out,
                               const struct dt_blocks *taken, dt_dtype_t dtype)
{
    struct dt_call call = make_call(given, dtype, -1);
    dt_result_t r = dt_comm_begin(c, &call, kind);

    if (r != DT_OK)
        return r;
    r = in && in == out ? all_to_all_from_copy(c, &call, out, taken)
                        : dt_comm_all_to_all_within(c, &call, in, given, out, taken);
    return dt_comm_end(c, &call, r);
}

static dt_result_t move_within_host(struct dt_comm *c, const struct dt_call *call,
                                    const struct dt_rooted *g, uint64_t *count_check)
{
    const struct dt_shm_local local = { c->locals.v, count_check };
    struct dt_rooted here = *g;

    if (c->node_of[g->root] != c->node)
        return dt_shm_begin_sum(&c->shm, call, count_check);
    here.root = dt_comm_local_rank(c, g->root);
    return dt_shm_rooted(&c->shm, call, &here, &local);
}

static dt_result_t move_rooted(struct dt_comm *c, const struct dt_call *call,
                               const struct dt_rooted *g)
{
    uint64_t count_check;
    dt_result_t r;

    if (c->nodes == 1)
        return dt_shm_rooted(&c->shm, call, g, NULL);
    count_check = count_check_of_rooted(c, g);
    r = move_within_host(c, call, g, &count_check);
    if (r == DT_OK)
        r = sum_count_checks(c, call, &count_check);
    if (r == DT_OK)
        r = dt_tcp_rooted(&c->mesh, call, g);
    return r == DT_OK ? await_mismatch(c, count_check) : r;
}

dt_result_t dt_comm_rooted(struct dt_comm *c, enum dt_call_kind kind, const struct dt_rooted *g,
                           dt_dtype_t dtype)
{
    struct dt_call call = make_call(g->blocks, dtype, (int)g->root);
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, move_rooted(c, &call, g)) : r;
}
