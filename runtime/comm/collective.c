#include "runtime/comm/collective.h"

#include <stdlib.h>

#include "runtime/base/copy.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/coll/adasum.h"
#include "runtime/coll/compressed.h"
#include "runtime/coll/leader_allreduce.h"
#include "runtime/coll/ring_allgather.h"
#include "runtime/comm/alltoall.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/alltoall.h"
#include "runtime/tcp/alltoall.h"

/* Below these sizes a reduce or reduce-scatter between hosts is no faster than an all-reduce; the
 * first is for few hosts. */
enum { FEW_HOSTS = 3, BLOCKS_LEAST_OF_FEW = 2 * 1024, BLOCKS_LEAST = 32 * 1024 };

static int divisor_of(const struct dt_comm *c, const struct dt_call *call)
{
    return call->op == DT_AVG ? c->size : 1;
}

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
    return (double)divisor_of(c, call) / host_divisor_of(c, call);
}

/* All-reduces among the hosts. o may be NULL. */
static dt_result_t all_reduce_among_hosts(struct dt_comm *c, const struct dt_call *call,
                                          const dt_all_reduce_options_t *o, const void *in,
                                          void *out)
{
    if (o && o->wire != DT_WIRE_EXACT)
        return dt_compressed_all_reduce(&c->leaders, call, o, in, out, call->count,
                                        divisor_of(c, call));
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

static dt_result_t all_reduce_elements(struct dt_comm *c, const struct dt_call *call,
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
        const struct dt_hierarchical_result all = { .whom = DT_LAYOUT_FOR_ALL,
                                                    .host_divisor = host_divisor_of(c, call),
                                                    .divisor = rest_divisor_of(c, call) };

        return dt_hierarchical_reduce(&c->hierarchical, call, in, out, &all);
    }
    r = reduce_within_host(c, call, in, out);
    if (r == DT_OK && dt_comm_leads(c))
        r = all_reduce_among_hosts(c, call, o, out, out);
    return r == DT_OK ? dt_shm_share(&c->shm, out, bytes, 0) : r;
}

static dt_result_t adasum(struct dt_comm *c, const struct dt_call *call, const void *in, void *out);

static dt_result_t all_reduce(struct dt_comm *c, const struct dt_call *call,
                              const dt_all_reduce_options_t *o, const void *in, void *out)
{
    if (call->op == DT_ADASUM && c->size > 1)
        return adasum(c, call, in, out);
    return all_reduce_elements(c, call, o, in, out);
}

/* Whether this rank can publish all of its data to its host at once, without waiting and without
 * failing. */
static bool can_publish_small(const struct dt_comm *c, size_t bytes)
{
    return c->nodes == 1 && c->size > 1 && !c->announce && !c->on_device && c->failed == DT_OK &&
           dt_shm_is_small(&c->shm, bytes);
}

/* Publishes this rank's data first. The bookkeeping follows while the data of all ranks travel
 * between the caches. */
static dt_result_t all_reduce_small(struct dt_comm *c, struct dt_call *call, const void *in,
                                    void *out)
{
    call->kind = DT_CALL_ALL_REDUCE;
    dt_comm_count(c, call);
    dt_shm_publish_small(&c->shm, call, in);
    dt_comm_note(c, call);
    dt_ring_show(c->shm.ring);
    return dt_comm_end(c, call,
                       dt_shm_all_reduce_small(&c->shm, call, in, out, divisor_of(c, call)));
}

dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op)
{
    struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .root = -1
    };
    dt_result_t r;

    if (op != DT_ADASUM && can_publish_small(c, count * dt_dtype_size(dtype)))
        return all_reduce_small(c, &call, in, out);
    r = dt_comm_begin(c, &call, DT_CALL_ALL_REDUCE);
    return r == DT_OK ? dt_comm_end(c, &call, all_reduce(c, &call, NULL, in, out)) : r;
}

static dt_result_t all_reduce_with(struct dt_comm *c, const struct dt_call *call,
                                   const dt_all_reduce_options_t *o, const void *in, void *out)
{
    dt_dtype_t dtype = (dt_dtype_t)call->dtype;
    const void *from = dt_reduceoptions_before(o, in, out, call->count, dtype);
    dt_result_t r = all_reduce(c, call, o, from, out);

    if (r == DT_OK)
        dt_reduceoptions_after(o, out, call->count, dtype);
    return r;
}

/* done: the steps of the options that this rank has done itself. */
static dt_result_t all_reduce_as(struct dt_comm *c, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype, dt_op_t op,
                                 const dt_all_reduce_options_t *options,
                                 const dt_all_reduce_options_t *done, uint64_t buffers)
{
    struct dt_call call = { .count = count,
                            .dtype = (uint8_t)dtype,
                            .op = (uint8_t)op,
                            .root = -1,
                            .options = dt_reduceoptions_mark(options) | buffers };
    dt_result_t r;

    if (options->wire == DT_WIRE_2BIT && c->nodes > DT_COMPRESSED_2BIT_HOSTS)
        return dt_fail(DT_ERR_UNSUPPORTED,
                       "an all-reduce as 2bit works with up to %d hosts, not %u",
                       DT_COMPRESSED_2BIT_HOSTS, c->nodes);
    c->announced = options;
    r = dt_comm_begin(c, &call, DT_CALL_ALL_REDUCE);
    c->announced = NULL;
    return r == DT_OK ? dt_comm_end(c, &call, all_reduce_with(c, &call, done, in, out)) : r;
}

dt_result_t dt_comm_all_reduce_with(struct dt_comm *c, const void *in, void *out, size_t count,
                                    dt_dtype_t dtype, dt_op_t op,
                                    const dt_all_reduce_options_t *options, uint64_t buffers)
{
    return all_reduce_as(c, in, out, count, dtype, op, options, options, buffers);
}

dt_result_t dt_comm_all_reduce_no_data(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                                       dt_op_t op, const dt_all_reduce_options_t *options,
                                       uint64_t buffers)
{
    dt_all_reduce_options_t done = *options;

    done.prescale = done.postscale = 1;
    done.residual = NULL;
    return all_reduce_as(c, buf, buf, count, dtype, op, options, &done, buffers);
}

/* Root gives the data to its host's leader, unless it is the leader. The leaders broadcast them,
 * then pass them on within their hosts. A rank returns only when its leader has heard from all
 * hosts. So the ranks of root's host wait for their leader, although they have the data already. */
static dt_result_t broadcast_bytes(struct dt_comm *c, const struct dt_call *call, void *buf,
                                   size_t bytes, uint32_t root)
{
    uint32_t root_host = c->node_of[root],
             from = c->node == root_host ? dt_comm_local_rank(c, root) : 0;
    dt_result_t r = DT_OK;

    if (c->nodes == 1)
        return dt_shm_share(&c->shm, buf, bytes, from);
    if (from)
        r = dt_shm_share(&c->shm, buf, bytes, from);
    if (r == DT_OK && dt_comm_leads(c))
        r = dt_leaders_broadcast(&c->leaders, call, buf, bytes, root_host);
    return r == DT_OK ? dt_shm_share(&c->shm, buf, from ? 0 : bytes, 0) : r;
}

static dt_result_t broadcast(struct dt_comm *c, const struct dt_call *call, void *buf, size_t bytes)
{
    dt_result_t r;

    if (c->size == 1)
        return DT_OK;
    r = dt_shm_begin(&c->shm, call);
    return r == DT_OK ? broadcast_bytes(c, call, buf, bytes, (uint32_t)call->root) : r;
}

dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root)
{
    struct dt_call call = { .count = count, .dtype = (uint8_t)dtype, .root = root };
    size_t bytes = count * dt_dtype_size(dtype);
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_BROADCAST);

    return r == DT_OK ? dt_comm_end(c, &call, broadcast(c, &call, buf, bytes)) : r;
}

static dt_result_t barrier(struct dt_comm *c, const struct dt_call *call)
{
    dt_result_t r = dt_shm_begin(&c->shm, call);

    if (r == DT_OK && dt_comm_leads(c))
        r = dt_leaders_barrier(&c->leaders, call);
    if (r == DT_OK && c->nodes > 1)
        r = dt_shm_share(&c->shm, NULL, 0, 0);
    return r;
}

static dt_result_t all_gather_table(struct dt_comm *c, const struct dt_call *call, void *table,
                                    void (*then)(void *arg), void *arg)
{
    dt_result_t r = all_reduce_elements(c, call, NULL, table, table);

    if (r != DT_OK || !then)
        return r;
    then(arg);
    return barrier(c, call);
}

dt_result_t dt_comm_all_gather_table_and(struct dt_comm *c, enum dt_call_kind kind, void *table,
                                         size_t bytes, void (*then)(void *arg), void *arg)
{
    struct dt_call call = {
        .count = (size_t)c->size * bytes / 8, .dtype = DT_U64, .op = DT_BOR, .root = -1
    };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, all_gather_table(c, &call, table, then, arg)) : r;
}

dt_result_t dt_comm_all_gather_table(struct dt_comm *c, enum dt_call_kind kind, void *table,
                                     size_t bytes)
{
    return dt_comm_all_gather_table_and(c, kind, table, bytes, NULL, NULL);
}

dt_result_t dt_comm_all_reduce_words(struct dt_comm *c, enum dt_call_kind kind, int64_t *words,
                                     size_t n, dt_op_t op)
{
    struct dt_call call = { .count = n, .dtype = DT_I64, .op = (uint8_t)op, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, all_reduce_elements(c, &call, NULL, words, words))
                      : r;
}

dt_result_t dt_comm_broadcast_bytes(struct dt_comm *c, enum dt_call_kind kind, void *buf,
                                    size_t bytes, int root)
{
    struct dt_call call = { .count = bytes, .dtype = DT_U8, .root = root };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, broadcast(c, &call, buf, bytes)) : r;
}

dt_result_t dt_comm_announce(struct dt_comm *c, int64_t *words, size_t n)
{
    struct dt_call call = { .count = n, .dtype = DT_I64, .op = DT_MAX, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_UNEVEN);

    if (r != DT_OK)
        return r;
    dt_comm_pass_for(c, &call, c->next.kind);
    return dt_comm_end(c, &call, all_reduce_elements(c, &call, NULL, words, words));
}

dt_result_t dt_comm_barrier_of(struct dt_comm *c, enum dt_call_kind kind, size_t bytes)
{
    struct dt_call call = { .count = bytes, .dtype = DT_U8, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, barrier(c, &call)) : r;
}

dt_result_t dt_comm_barrier(struct dt_comm *c, enum dt_call_kind kind)
{
    return dt_comm_barrier_of(c, kind, 0);
}

/* Ranks that disagree on thresholds would wait for each other in different algorithms, so a
 * difference is detected here. */
dt_result_t dt_comm_first_barrier(struct dt_comm *c, enum dt_call_kind kind, void *buf,
                                  size_t bytes, void (*heed)(struct dt_comm *c, void *buf))
{
    struct dt_call call = { .op = c->world->settings.deterministic, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    if (r != DT_OK)
        return r;
    r = barrier(c, &call);
    if (r == DT_OK)
        r = broadcast_bytes(c, &call, buf, bytes, 0);
    if (r == DT_OK) {
        heed(c, buf);
        r = dt_comm_leads(c) ? dt_leaders_connect(&c->leaders) : DT_OK;
    }
    return dt_comm_end(c, &call, r);
}

dt_result_t dt_comm_match_and(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call,
                              dt_result_t (*then)(struct dt_comm *c, void *arg), void *arg)
{
    dt_result_t r = dt_comm_begin(c, &call, kind);

    if (r != DT_OK)
        return r;
    r = barrier(c, &call);
    if (r == DT_OK && then)
        r = then(c, arg);
    return dt_comm_end(c, &call, r);
}

dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call)
{
    return dt_comm_match_and(c, kind, call, NULL, NULL);
}

/* ---- reduce, reduce-scatter and gather: ranks get different results ---- */

/* Whether hosts reduce each block only for the ranks that need it. Small data take an all-reduce,
 * which is as fast; a rank that needs no result gives it a temporary buffer. */
static bool uses_blocks(const struct dt_comm *c, size_t bytes)
{
    return c->nodes > 1 && c->hierarchical.for_few &&
           bytes >= (c->nodes <= FEW_HOSTS ? BLOCKS_LEAST_OF_FEW : BLOCKS_LEAST);
}

/* Gives the same bytes as an all-reduce of this size. */
static dt_result_t reduce_blocks(struct dt_comm *c, const struct dt_call *call, const void *in,
                                 void *out, struct dt_hierarchical_result result, size_t bytes)
{
    result.host_divisor = host_divisor_of(c, call);
    result.divisor = rest_divisor_of(c, call);
    result.round = !uses_all_leaders(c, NULL, bytes) &&
                   dt_leaders_uses_ring(&c->leaders, (dt_dtype_t)call->dtype, bytes);
    return dt_hierarchical_reduce(&c->hierarchical, call, in, out, &result);
}

static dt_result_t reduce(struct dt_comm *c, const struct dt_call *call, const void *in, void *out)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    void *aside = NULL;
    dt_result_t r;

    if (uses_blocks(c, bytes))
        return reduce_blocks(c, call, in, out,
                             (struct dt_hierarchical_result){ .whom = DT_LAYOUT_FOR_ROOT,
                                                              .root_host = c->node_of[call->root],
                                                              .is_root = c->rank == call->root },
                             bytes);
    if (c->nodes == 1 && c->size > 1)
        return dt_shm_reduce(&c->shm, call, in, out, (uint32_t)call->root, divisor_of(c, call));
    if (c->rank != call->root) {
        aside = malloc(bytes + 1);
        if (!aside)
            return dt_comm_no_memory(c);
    }
    r = all_reduce_elements(c, call, NULL, in, aside ? aside : out);
    free(aside);
    return r;
}

dt_result_t dt_comm_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, int root)
{
    struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .root = root
    };
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_REDUCE);

    return r == DT_OK ? dt_comm_end(c, &call, reduce(c, &call, in, out)) : r;
}

/* The counts of all blocks in one number, for the comparison of calls. All ranks pass the same
 * counts. */
static uint64_t agreed_count(const struct dt_comm *c, const struct dt_blocks *blocks)
{
    return blocks->counts ? dt_counts_hash(blocks->counts, (size_t)c->size) : blocks->each;
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
    r = all_reduce_elements(c, &whole, NULL, in, all);
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
        return dt_shm_reduce_scatter(&c->shm, call, in, out, blocks, divisor_of(c, call));
    if (!blocks->counts && uses_blocks(c, bytes * c->nodes * c->hierarchical.n_leaders))
        return reduce_blocks(c, call, in, out,
                             (struct dt_hierarchical_result){ .whom = DT_LAYOUT_FOR_EACH },
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

dt_result_t dt_comm_reduce_scatter(struct dt_comm *c, enum dt_call_kind kind, const void *in,
                                   void *out, const struct dt_blocks *blocks, dt_dtype_t dtype,
                                   dt_op_t op)
{
    struct dt_call call = {
        .count = agreed_count(c, blocks), .dtype = (uint8_t)dtype, .op = (uint8_t)op, .root = -1
    };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    if (r != DT_OK)
        return r;
    r = blocks->counts && in && in == out ? reduce_scatter_aside(c, &call, out, blocks)
                                          : reduce_scatter(c, &call, in, out, blocks);
    return dt_comm_end(c, &call, r);
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
static dt_result_t all_gather(struct dt_comm *c, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks)
{
    size_t total;
    dt_result_t r;

    if (c->nodes == 1)
        return dt_shm_all_gather(&c->shm, call, in, out, blocks);
    r = barrier(c, call);
    if (r != DT_OK)
        return r;
    total = dt_blocks_bytes(blocks, (uint32_t)c->size, (dt_dtype_t)call->dtype);
    if ((uint32_t)c->size == c->nodes || total < ring_least_bytes(c))
        return dt_tcp_all_gather(&c->mesh, call, in, out, blocks);
    return all_gather_by_ring(c, call, in, out, blocks);
}

dt_result_t dt_comm_all_gather(struct dt_comm *c, enum dt_call_kind kind, const void *in, void *out,
                               const struct dt_blocks *blocks, dt_dtype_t dtype)
{
    struct dt_call call = { .count = agreed_count(c, blocks), .dtype = (uint8_t)dtype, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, all_gather(c, &call, in, out, blocks)) : r;
}

/* ---- Adasum ---- */

enum { WEIGHED_FEW = 8 * 1024 }; /* bytes of all vectors; up to here each rank weighs all of them */

/* What a rank works on: a chunk of every vector, or all vectors. */
struct adasum_work {
    bool all;
    size_t *counts; /* of each rank's chunk or vector */
    uint8_t *vectors;
    double *weights;
    struct dt_adasum_products *products;
};

static bool adasum_work_make(struct adasum_work *w, const struct dt_comm *c,
                             const struct dt_call *call)
{
    size_t n = (size_t)c->size, size = dt_dtype_size((dt_dtype_t)call->dtype);

    w->all = call->count * size <= WEIGHED_FEW / n;
    w->counts = calloc(n, sizeof *w->counts);
    w->weights = calloc(n, sizeof *w->weights);
    w->products = calloc(n / 2, sizeof *w->products);
    if (!w->counts || !w->weights || !w->products)
        return false;
    for (size_t i = 0; i < n; i++) {
        w->counts[i] = w->all ? call->count : call->count / n + (i < call->count % n);
        w->weights[i] = 1;
    }
    w->vectors = malloc(n * w->counts[c->rank] * size + 1);
    return w->vectors != NULL;
}

static void adasum_work_free(struct adasum_work *w)
{
    free(w->counts);
    free(w->vectors);
    free(w->weights);
    free(w->products);
}

/* All ranks get the same products and so the same weights. The sum has a call number of its own:
 * ranks that still move vectors take it for a later call, not for a mismatch. */
static dt_result_t weigh_vectors(struct dt_comm *c, const struct dt_call *call,
                                 const struct dt_adasum *a, const struct adasum_work *w)
{
    struct dt_call sum = *call;
    dt_result_t r = DT_OK;

    sum.dtype = DT_F64;
    sum.op = DT_SUM;
    for (size_t width = 1; width < a->n && r == DT_OK; width *= 2) {
        sum.count = a->n / 2 / width * (sizeof *w->products / sizeof(double));
        dt_adasum_multiply(a, w->weights, width, w->products);
        if (!w->all) {
            dt_comm_count(c, &sum);
            r = all_reduce_elements(c, &sum, NULL, w->products, w->products);
        }
        dt_adasum_weigh(w->products, a->n, width, w->weights);
    }
    return r;
}

/* "in" has reached all ranks before it may be overwritten. */
static dt_result_t combine_vectors(struct dt_comm *c, const struct dt_call *call, const void *in,
                                   void *out, const struct adasum_work *w)
{
    const struct dt_blocks blocks = dt_blocks_of(w->counts);
    const struct dt_blocks mine = dt_blocks_each(w->counts[c->rank]);
    const struct dt_adasum a = { .vectors = w->vectors,
                                 .n = (size_t)c->size,
                                 .count = mine.each,
                                 .dtype = (dt_dtype_t)call->dtype };
    struct dt_call last = *call;
    uint8_t *place =
        (uint8_t *)out + (w->all ? 0 : dt_blocks_bytes(&blocks, (uint32_t)c->rank, a.dtype));
    dt_result_t r = w->all ? all_gather(c, call, in, w->vectors, &blocks)
                           : dt_comm_all_to_all_within(c, call, in, &blocks, w->vectors, &mine);

    if (r == DT_OK)
        r = weigh_vectors(c, call, &a, w);
    if (r != DT_OK)
        return r;
    dt_adasum_combine(&a, w->weights, place);
    if (w->all)
        return DT_OK;
    dt_comm_count(c, &last);
    return all_gather(c, &last, place, out, &blocks);
}

static dt_result_t adasum(struct dt_comm *c, const struct dt_call *call, const void *in, void *out)
{
    struct adasum_work w = { 0 };
    dt_result_t r = adasum_work_make(&w, c, call) ? combine_vectors(c, call, in, out, &w)
                                                  : dt_comm_no_memory(c);

    adasum_work_free(&w);
    return r;
}
