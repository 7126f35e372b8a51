#include "runtime/comm/algorithm.h"

#include <stdlib.h>

#include "runtime/base/copy.h"
#include "runtime/coll/compressed.h"
#include "runtime/coll/leader_allreduce.h"
#include "runtime/coll/ring_allgather.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/alltoall.h"
#include "runtime/tcp/alltoall.h"

/* Below these sizes a reduce or reduce-scatter between hosts is no faster than an all-reduce. The
 * first size holds for FEW_HOSTS hosts or fewer. */
enum { FEW_HOSTS = 3, BLOCKS_LEAST_OF_FEW = 2 * 1024, BLOCKS_LEAST = 32 * 1024 };

/* The divisor of each host's sum, before it is rounded. Sums of an f16 average could overflow
 * otherwise. A power of two keeps all digits. */
static int host_divisor_of(const struct dt_comm *c, const struct dt_call *call)
{
    int divisor = 1;

    if (call->op == DT_AVG && call->dtype == DT_F16 && c->nodes > 1) {
        while ((uint32_t)divisor < c->hierarchical.most_ranks)
            divisor *= 2;
    }
    return divisor;
}

/* The divisor that remains for the sum of all hosts. */
static double rest_divisor_of(const struct dt_comm *c, const struct dt_call *call)
{
    return (double)dt_algorithm_divisor(c, call) / host_divisor_of(c, call);
}

/* All-reduces among the hosts. o may be NULL. */
static dt_result_t all_reduce_among_hosts(struct dt_comm *c, const struct dt_call *call,
                                          const dt_all_reduce_options_t *o, const void *in,
                                          void *out)
{
    if (o && o->wire != DT_WIRE_EXACT)
        return dt_compressed_all_reduce(&c->leaders, call, o, in, out, call->count,
                                        dt_algorithm_divisor(c, call));
    return dt_leaders_all_reduce(&c->leaders, call, in, out, call->count, rest_divisor_of(c, call));
}

/* Stores the sum of this host's data at the host's first rank. */
static dt_result_t reduce_within_host(struct dt_comm *c, const struct dt_call *call, const void *in,
                                      void *out)
{
    int divisor = host_divisor_of(c, call);
    struct dt_fold alone = {
        .dst = out, .src = &in, .n = 1, .count = call->count, .divisor = divisor
    };

    if (c->local_size > 1)
        return dt_shm_reduce(&c->shm, call, in, out, 0, divisor);
    dt_fold(&alone, (dt_dtype_t)call->dtype, (dt_op_t)call->op);
    return DT_OK;
}

/* Whether several leaders of each host talk to other hosts, or only the first rank. */
static bool uses_all_leaders(const struct dt_comm *c, const dt_all_reduce_options_t *o,
                             size_t bytes)
{
    return c->hierarchical.n_leaders > 1 && bytes > 0 &&
           bytes / c->hierarchical.n_leaders >= c->tuning.net_leader &&
           (!o || o->wire == DT_WIRE_EXACT);
}

dt_result_t dt_algorithm_all_reduce(struct dt_comm *c, const struct dt_call *call,
                                    const dt_all_reduce_options_t *o, const void *in, void *out)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    dt_result_t r;

    if (c->size == 1) {
        if (bytes)
            dt_fold_alone(out, in, call->count, (dt_dtype_t)call->dtype);
        return DT_OK;
    }
    if (c->nodes == 1)
        return dt_shm_all_reduce(&c->shm, call, in, out);
    if (c->local_size == 1 && host_divisor_of(c, call) == 1)
        return all_reduce_among_hosts(c, call, o, in, out);
    if (uses_all_leaders(c, o, bytes)) {
        const struct dt_hierarchical_result all = { .recipients = DT_LAYOUT_FOR_ALL,
                                                    .host_divisor = host_divisor_of(c, call),
                                                    .divisor = rest_divisor_of(c, call) };

        return dt_hierarchical_reduce(&c->hierarchical, call, in, out, &all);
    }
    r = reduce_within_host(c, call, in, out);
    if (r == DT_OK && dt_comm_leads(c))
        r = all_reduce_among_hosts(c, call, o, out, out);
    return r == DT_OK ? dt_shm_broadcast(&c->shm, out, bytes, 0) : r;
}

/* Root gives the data to its host's leader, unless it is the leader. The leaders broadcast them,
 * then pass them on within their hosts. A rank returns only when its leader has heard from all
 * hosts. So the ranks of root's host wait for their leader, although they have the data already. */
dt_result_t dt_algorithm_pass_on(struct dt_comm *c, const struct dt_call *call, void *buf,
                                 size_t bytes, uint32_t root)
{
    uint32_t root_host = c->node_of[root],
             from = c->node == root_host ? dt_comm_local_rank(c, root) : 0;
    dt_result_t r = DT_OK;

    if (c->nodes == 1)
        return dt_shm_broadcast(&c->shm, buf, bytes, from);
    if (from)
        r = dt_shm_broadcast(&c->shm, buf, bytes, from);
    if (r == DT_OK && dt_comm_leads(c))
        r = dt_leaders_broadcast(&c->leaders, call, buf, bytes, root_host);
    return r == DT_OK ? dt_shm_broadcast(&c->shm, buf, from ? 0 : bytes, 0) : r;
}

dt_result_t dt_algorithm_broadcast(struct dt_comm *c, const struct dt_call *call, void *buf,
                                   size_t bytes)
{
    dt_result_t r;

    if (c->size == 1)
        return DT_OK;
    r = dt_shm_begin(&c->shm, call);
    return r == DT_OK ? dt_algorithm_pass_on(c, call, buf, bytes, (uint32_t)call->root) : r;
}

dt_result_t dt_algorithm_barrier(struct dt_comm *c, const struct dt_call *call)
{
    dt_result_t r = dt_shm_begin(&c->shm, call);

    if (r == DT_OK && dt_comm_leads(c))
        r = dt_leaders_barrier(&c->leaders, call);
    if (r == DT_OK && c->nodes > 1)
        r = dt_shm_broadcast(&c->shm, NULL, 0, 0);
    return r;
}

/* ---- ranks get different results ---- */

/* Whether hosts reduce each block only for the ranks that need it. For small data an all-reduce is
 * as fast; a rank that needs no result then passes a temporary buffer. */
static bool uses_blocks(const struct dt_comm *c, size_t bytes)
{
    return c->nodes > 1 && c->hierarchical.serves_blocks &&
           bytes >= (c->nodes <= FEW_HOSTS ? BLOCKS_LEAST_OF_FEW : BLOCKS_LEAST);
}

/* Gives the same bytes as an all-reduce of this size. */
static dt_result_t reduce_blocks(struct dt_comm *c, const struct dt_call *call, const void *in,
                                 void *out, struct dt_hierarchical_result result, size_t bytes)
{
    result.host_divisor = host_divisor_of(c, call);
    result.divisor = rest_divisor_of(c, call);
    result.in_ring_order = !uses_all_leaders(c, NULL, bytes) &&
                           dt_leaders_uses_ring(&c->leaders, (dt_dtype_t)call->dtype, bytes);
    return dt_hierarchical_reduce(&c->hierarchical, call, in, out, &result);
}

dt_result_t dt_algorithm_reduce(struct dt_comm *c, const struct dt_call *call, const void *in,
                                void *out)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    void *aside = NULL;
    dt_result_t r;

    if (uses_blocks(c, bytes))
        return reduce_blocks(c, call, in, out,
                             (struct dt_hierarchical_result){ .recipients = DT_LAYOUT_FOR_ROOT,
                                                              .root_host = c->node_of[call->root],
                                                              .is_root = c->rank == call->root },
                             bytes);
    if (c->nodes == 1 && c->size > 1)
        return dt_shm_reduce(&c->shm, call, in, out, (uint32_t)call->root,
                             dt_algorithm_divisor(c, call));
    if (c->rank != call->root) {
        aside = malloc(bytes + 1);
        if (!aside)
            return dt_comm_no_memory(c);
    }
    r = dt_algorithm_all_reduce(c, call, NULL, in, aside ? aside : out);
    free(aside);
    return r;
}

/* All-reduces all blocks; each rank keeps its own. */
static dt_result_t all_reduce_and_keep_block(struct dt_comm *c, const struct dt_call *call,
                                             const void *in, void *out,
                                             const struct dt_blocks *blocks)
{
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    size_t size = dt_dtype_size(dtype), total = dt_blocks_bytes(blocks, (uint32_t)c->size, dtype);
    size_t own = dt_blocks_count(blocks, (uint32_t)c->rank) * size;
    struct dt_call whole = *call;
    uint8_t *all = malloc(total + 1);
    dt_result_t r;

    if (!all)
        return dt_comm_no_memory(c);
    whole.count = total / size;
    whole.options = blocks->counts ? call->count : (uint64_t)c->size;
    r = dt_algorithm_all_reduce(c, &whole, NULL, in, all);
    if (r == DT_OK && own)
        dt_copy(out, all + dt_blocks_bytes(blocks, (uint32_t)c->rank, dtype), own);
    free(all);
    return r;
}

static dt_result_t reduce_scatter(struct dt_comm *c, const struct dt_call *call, const void *in,
                                  void *out, const struct dt_blocks *blocks)
{
    size_t bytes = blocks->each * dt_dtype_size((dt_dtype_t)call->dtype);
    size_t own = dt_blocks_count(blocks, (uint32_t)c->rank);

    if (c->size == 1) {
        if (own)
            dt_fold_alone(out, in, own, (dt_dtype_t)call->dtype);
        return DT_OK;
    }
    if (c->nodes == 1)
        return dt_shm_reduce_scatter(&c->shm, call, in, out, blocks, dt_algorithm_divisor(c, call));
    if (!blocks->counts && uses_blocks(c, bytes * c->nodes * c->hierarchical.n_leaders))
        return reduce_blocks(c, call, in, out,
                             (struct dt_hierarchical_result){ .recipients = DT_LAYOUT_FOR_EACH },
                             bytes * (size_t)c->size);
    return all_reduce_and_keep_block(c, call, in, out, blocks);
}

/* Reduces into a temporary buffer: the result would overwrite other blocks that are still
 * needed. */
static dt_result_t reduce_scatter_aside(struct dt_comm *c, const struct dt_call *call, void *buf,
                                        const struct dt_blocks *blocks)
{
    size_t own =
        dt_blocks_count(blocks, (uint32_t)c->rank) * dt_dtype_size((dt_dtype_t)call->dtype);
    void *out = malloc(own + 1);
    dt_result_t r;

    if (!out)
        return dt_comm_no_memory(c);
    r = reduce_scatter(c, call, buf, out, blocks);
    if (r == DT_OK && own)
        dt_copy(buf, out, own);
    free(out);
    return r;
}

dt_result_t dt_algorithm_reduce_scatter(struct dt_comm *c, const struct dt_call *call,
                                        const void *in, void *out, const struct dt_blocks *blocks)
{
    return blocks->counts && in && in == out ? reduce_scatter_aside(c, call, out, blocks)
                                             : reduce_scatter(c, call, in, out, blocks);
}

static dt_result_t all_gather_by_ring(struct dt_comm *c, const struct dt_call *call, const void *in,
                                      void *out, const struct dt_blocks *blocks)
{
    const struct dt_ring_allgather g = { .shm = &c->shm,
                                         .leaders = &c->leaders,
                                         .n_leaders = c->hierarchical.n_leaders,
                                         .size = (uint32_t)c->size,
                                         .host_ranks = &c->host_ranks };

    return dt_ring_allgather(&g, call, in, out, blocks);
}

/* With two hosts the ring is a single step, so it pays for much smaller data. */
static size_t ring_least_bytes(const struct dt_comm *c)
{
    return c->nodes == 2 ? c->tuning.net_leader / 64 : c->tuning.net_leader;
}

/* In these algorithms not every pair of ranks communicates, and a rank may wait in shared memory
 * for a call that another rank does not make. So all ranks first compare their calls. */
dt_result_t dt_algorithm_all_gather(struct dt_comm *c, const struct dt_call *call, const void *in,
                                    void *out, const struct dt_blocks *blocks)
{
    size_t total;
    dt_result_t r;

    if (c->nodes == 1)
        return dt_shm_all_gather(&c->shm, call, in, out, blocks);
    r = dt_algorithm_barrier(c, call);
    if (r != DT_OK)
        return r;
    total = dt_blocks_bytes(blocks, (uint32_t)c->size, (dt_dtype_t)call->dtype);
    if ((uint32_t)c->size == c->nodes || total < ring_least_bytes(c))
        return dt_tcp_all_gather(&c->mesh, call, in, out, blocks);
    return all_gather_by_ring(c, call, in, out, blocks);
}
