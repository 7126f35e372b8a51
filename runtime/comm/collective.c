#include "runtime/comm/collective.h"

#include "runtime/base/reduceoptions.h"
#include "runtime/coll/compressed.h"
#include "runtime/comm/adasum_reduce.h"
#include "runtime/comm/algorithm.h"
#include "runtime/kernels/dtype.h"

static struct dt_call reduce_call(size_t count, dt_dtype_t dtype, dt_op_t op)
{
    const struct dt_call call = {
        .count = count, .dtype = (uint8_t)dtype, .op = (uint8_t)op, .root = -1
    };

    return call;
}

static dt_result_t all_reduce(struct dt_comm *c, const struct dt_call *call,
                              const dt_all_reduce_options_t *o, const void *in, void *out)
{
    if (call->op == DT_ADASUM && c->size > 1)
        return dt_adasum_reduce(c, call, in, out);
    return dt_algorithm_all_reduce(c, call, o, in, out);
}

/* Whether this rank can publish all of its data to its host at once, without waiting or failing. */
static bool can_publish_small(const struct dt_comm *c, size_t bytes)
{
    return c->nodes == 1 && c->size > 1 && !c->announce && !c->on_device && c->failed == DT_OK &&
           dt_shm_can_publish_small(&c->shm, bytes);
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
    return dt_comm_end(
        c, call, dt_shm_all_reduce_small(&c->shm, call, in, out, dt_algorithm_divisor(c, call)));
}

dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op)
{
    struct dt_call call = reduce_call(count, dtype, op);
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

/* options: as the ranks compare them; own: as this rank applies them. */
static dt_result_t all_reduce_as(struct dt_comm *c, struct dt_call *call, const void *in, void *out,
                                 const dt_all_reduce_options_t *options,
                                 const dt_all_reduce_options_t *own)
{
    dt_result_t r;

    call->options |= dt_reduceoptions_mark(options);
    if (options->wire == DT_WIRE_2BIT && c->nodes > DT_COMPRESSED_2BIT_HOSTS)
        return dt_fail(DT_ERR_UNSUPPORTED,
                       "an all-reduce as 2bit works with up to %d hosts, not %u",
                       DT_COMPRESSED_2BIT_HOSTS, c->nodes);
    c->announced = options;
    r = dt_comm_begin(c, call, DT_CALL_ALL_REDUCE);
    c->announced = NULL;
    return r == DT_OK ? dt_comm_end(c, call, all_reduce_with(c, call, own, in, out)) : r;
}

dt_result_t dt_comm_all_reduce_with(struct dt_comm *c, const void *in, void *out, size_t count,
                                    dt_dtype_t dtype, dt_op_t op,
                                    const dt_all_reduce_options_t *options, uint64_t buffers)
{
    struct dt_call call = reduce_call(count, dtype, op);

    call.options = buffers;
    return all_reduce_as(c, &call, in, out, options, options);
}

dt_result_t dt_comm_all_reduce_no_data(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                                       dt_op_t op, const dt_all_reduce_options_t *options,
                                       uint64_t buffers)
{
    struct dt_call call = reduce_call(count, dtype, op);
    dt_all_reduce_options_t own = *options;

    call.options = buffers;
    own.prescale = own.postscale = 1;
    own.residual = NULL;
    return all_reduce_as(c, &call, buf, buf, options, &own);
}

dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root)
{
    struct dt_call call = { .count = count, .dtype = (uint8_t)dtype, .root = root };
    size_t bytes = count * dt_dtype_size(dtype);
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_BROADCAST);

    return r == DT_OK ? dt_comm_end(c, &call, dt_algorithm_broadcast(c, &call, buf, bytes)) : r;
}

dt_result_t dt_comm_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, int root)
{
    struct dt_call call = reduce_call(count, dtype, op);
    dt_result_t r;

    call.root = root;
    r = dt_comm_begin(c, &call, DT_CALL_REDUCE);
    return r == DT_OK ? dt_comm_end(c, &call, dt_algorithm_reduce(c, &call, in, out)) : r;
}

static dt_result_t all_gather_table(struct dt_comm *c, const struct dt_call *call, void *table,
                                    void (*then)(void *arg), void *arg)
{
    dt_result_t r = dt_algorithm_all_reduce(c, call, NULL, table, table);

    if (r != DT_OK || !then)
        return r;
    then(arg);
    return dt_algorithm_barrier(c, call);
}

dt_result_t dt_comm_all_gather_table_then(struct dt_comm *c, enum dt_call_kind kind, void *table,
                                          size_t bytes, void (*then)(void *arg), void *arg)
{
    struct dt_call call = reduce_call((size_t)c->size * bytes / 8, DT_U64, DT_BOR);
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, all_gather_table(c, &call, table, then, arg)) : r;
}

dt_result_t dt_comm_all_gather_table(struct dt_comm *c, enum dt_call_kind kind, void *table,
                                     size_t bytes)
{
    return dt_comm_all_gather_table_then(c, kind, table, bytes, NULL, NULL);
}

dt_result_t dt_comm_all_reduce_words(struct dt_comm *c, enum dt_call_kind kind, int64_t *words,
                                     size_t n, dt_op_t op)
{
    struct dt_call call = reduce_call(n, DT_I64, op);
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, dt_algorithm_all_reduce(c, &call, NULL, words, words))
                      : r;
}

dt_result_t dt_comm_broadcast_bytes(struct dt_comm *c, enum dt_call_kind kind, void *buf,
                                    size_t bytes, int root)
{
    struct dt_call call = { .count = bytes, .dtype = DT_U8, .root = root };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, dt_algorithm_broadcast(c, &call, buf, bytes)) : r;
}

dt_result_t dt_comm_announce(struct dt_comm *c, int64_t *words, size_t n)
{
    struct dt_call call = reduce_call(n, DT_I64, DT_MAX);
    dt_result_t r = dt_comm_begin(c, &call, DT_CALL_UNEVEN);

    if (r != DT_OK)
        return r;
    dt_comm_pass_for(c, &call, c->next.kind);
    return dt_comm_end(c, &call, dt_algorithm_all_reduce(c, &call, NULL, words, words));
}

/* Ranks with different settings would wait for each other in different algorithms. So rank 0's
 * thresholds hold for all, and ranks that disagree on deterministic sums do not match. */
dt_result_t dt_comm_first_barrier(struct dt_comm *c, enum dt_call_kind kind, void *buf,
                                  size_t bytes, void (*apply)(struct dt_comm *c, void *buf))
{
    struct dt_call call = { .op = c->world->settings.deterministic, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    if (r != DT_OK)
        return r;
    r = dt_algorithm_barrier(c, &call);
    if (r == DT_OK)
        r = dt_algorithm_pass_on(c, &call, buf, bytes, 0);
    if (r == DT_OK) {
        apply(c, buf);
        r = dt_comm_leads(c) ? dt_leaders_connect(&c->leaders) : DT_OK;
    }
    return dt_comm_end(c, &call, r);
}

dt_result_t dt_comm_match_then(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call,
                               dt_result_t (*then)(struct dt_comm *c, void *arg), void *arg)
{
    dt_result_t r = dt_comm_begin(c, &call, kind);

    if (r != DT_OK)
        return r;
    r = dt_algorithm_barrier(c, &call);
    if (r == DT_OK && then)
        r = then(c, arg);
    return dt_comm_end(c, &call, r);
}

dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call)
{
    return dt_comm_match_then(c, kind, call, NULL, NULL);
}

dt_result_t dt_comm_barrier(struct dt_comm *c, enum dt_call_kind kind)
{
    return dt_comm_match(c, kind, (struct dt_call){ .dtype = DT_U8, .root = -1 });
}

/* The counts of all blocks in one number, for the comparison of calls. All ranks pass the same
 * counts. */
static uint64_t agreed_count(const struct dt_comm *c, const struct dt_blocks *blocks)
{
    return blocks->counts ? dt_counts_hash(blocks->counts, (size_t)c->size) : blocks->each;
}

dt_result_t dt_comm_reduce_scatter(struct dt_comm *c, enum dt_call_kind kind, const void *in,
                                   void *out, const struct dt_blocks *blocks, dt_dtype_t dtype,
                                   dt_op_t op)
{
    struct dt_call call = reduce_call(agreed_count(c, blocks), dtype, op);
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK
               ? dt_comm_end(c, &call, dt_algorithm_reduce_scatter(c, &call, in, out, blocks))
               : r;
}

dt_result_t dt_comm_all_gather(struct dt_comm *c, enum dt_call_kind kind, const void *in, void *out,
                               const struct dt_blocks *blocks, dt_dtype_t dtype)
{
    struct dt_call call = { .count = agreed_count(c, blocks), .dtype = (uint8_t)dtype, .root = -1 };
    dt_result_t r = dt_comm_begin(c, &call, kind);

    return r == DT_OK ? dt_comm_end(c, &call, dt_algorithm_all_gather(c, &call, in, out, blocks))
                      : r;
}
