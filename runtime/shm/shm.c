#include "runtime/shm/shm.h"

#include <stdalign.h>
#include <string.h>

#include "runtime/base/copy.h"
#include "runtime/base/min.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/call_match.h"
#include "runtime/shm/chunk.h"
#include "runtime/shm/reduceopen.h"
#include "runtime/shm/rounds.h"
#include "runtime/shm/segment.h"
#include "runtime/shm/stream.h"

dt_result_t dt_shm_begin(struct dt_shm *s, const struct dt_call *call)
{
    return dt_call_match_and_tell(s, call, NULL, 0);
}

dt_result_t dt_shm_begin_sum(struct dt_shm *s, const struct dt_call *call, uint64_t *word)
{
    const uint64_t own = *word;
    dt_result_t r = dt_call_match_and_tell(s, call, &own, sizeof own);

    if (r == DT_OK)
        *word = 0;
    for (uint32_t i = 0; r == DT_OK && i < s->n; i++) {
        uint64_t theirs;

        memcpy(&theirs, dt_call_match_told(s, i, &own), sizeof theirs);
        *word += theirs;
    }
    return r;
}

/* ---- data in the staging areas: each rank reduces all of a small message, or a block of a large
 * one ---- */

/* staged: the other ranks' data are in their staging areas, else in their posts. This rank's own
 * data are read from its buffer, because other ranks are reading its post and staging area now. */
static void reduce_all_ranks(const struct dt_shm *s, const struct dt_call *call, const void *in,
                             void *out, int divisor, bool staged)
{
    const void *src[s->n];
    struct dt_fold f = {
        .dst = out, .src = src, .n = s->n, .count = call->count, .divisor = divisor
    };

    for (uint32_t i = 0; i < s->n; i++)
        src[i] = staged ? dt_round_staging(s, i) : dt_round_post(s, i)->data;
    src[s->me] = in;
    dt_fold(&f, (dt_dtype_t)call->dtype, (dt_op_t)call->op);
}

/* Stages the data that other ranks reduce. */
static void stage_for_others(struct dt_shm *s, const struct dt_chunk *c)
{
    uint8_t *mine = dt_round_staging(s, s->me);
    size_t at = dt_chunk_block_at(c, s->me), after = dt_chunk_block_at(c, s->me + 1);

    if (c->small) {
        dt_copy(mine, c->in, c->bytes);
        dt_round_demote(s);
        return;
    }
    dt_copy(mine, c->in, at);
    dt_copy(mine + after, c->in + after, c->bytes - after);
}

/* No rank stages its own block. */
static void find_sources(const struct dt_shm *s, const struct dt_chunk *c, size_t at,
                         const void **src)
{
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = (i == s->me ? c->in : dt_round_staging(s, i)) + at;
}

/* Reduces this rank's block into the output, the staging area, or both. */
static void fold_block(struct dt_shm *s, const struct dt_chunk *c)
{
    alignas(DT_HOSTSHM_LINE) uint8_t result[DT_CHUNK_L1];
    size_t end = dt_chunk_block_at(c, s->me + 1);

    for (size_t at = dt_chunk_block_at(c, s->me); at < end; at += DT_CHUNK_L1) {
        size_t bytes = dt_min(end - at, DT_CHUNK_L1);
        const void *src[s->n];

        find_sources(s, c, at, src);
        dt_chunk_fold(s, c, result, src, bytes);
        if (dt_chunk_is_for(c, s->me))
            dt_chunk_keep(c, c->out + at, result, bytes);
        if (c->root != s->me)
            dt_copy(dt_round_staging(s, s->me) + at, result, bytes);
    }
}

/* Puts this rank's block of the result where the ranks that get it will read it. */
static void place_block(struct dt_shm *s, const struct dt_chunk *c)
{
    size_t at = dt_chunk_block_at(c, s->me);

    if (dt_chunk_is_placed(c, s->me))
        return;
    if (c->at < c->folded)
        dt_copy(dt_round_staging(s, s->me) + at, c->out + at, dt_chunk_block_bytes(c, s->me));
    else
        fold_block(s, c);
}

static dt_result_t collect_blocks(struct dt_shm *s, const struct dt_chunk *c)
{
    for (uint32_t i = 1; i < s->n; i++) {
        uint32_t peer = (s->me + i) % s->n;
        size_t at = dt_chunk_block_at(c, peer);
        dt_result_t r = dt_round_await(s, peer, DT_REDUCED);

        if (r != DT_OK)
            return r;
        if (!dt_chunk_is_placed(c, peer))
            dt_chunk_keep(c, c->out + at, dt_round_staging(s, peer) + at,
                          dt_chunk_block_bytes(c, peer));
    }
    return DT_OK;
}

/* ---- small messages, in the posts or the staging areas ---- */

/* Whether the call is faster with one synchronisation, in which each rank reduces all data. */
static bool one_sync_is_faster(const struct dt_shm *s, size_t bytes)
{
    return bytes <= s->small && bytes <= dt_round_most(s);
}

static bool takes_small(const struct dt_shm *s, size_t bytes)
{
    return one_sync_is_faster(s, bytes) && !dt_reduceopen_may_map(s, bytes, true);
}

/* After a stop a rank must not publish: the call could then succeed on other ranks and fail here.
 */
bool dt_shm_can_publish_small(const struct dt_shm *s, size_t bytes)
{
    return takes_small(s, bytes) && dt_round_is_free(s) && !dt_hostshm_stopped(&s->map, NULL);
}

static size_t call_bytes(const struct dt_call *call)
{
    return call->count * dt_dtype_size((dt_dtype_t)call->dtype);
}

/* How many bytes of a small message are staged: none if the post has room for them, else all. */
static size_t staged_of_small(size_t bytes)
{
    return bytes <= DT_HOSTSHM_INLINE ? 0 : bytes;
}

/* Call it in the round that has begun. */
static void publish_small(struct dt_shm *s, const struct dt_call *call, const void *in)
{
    size_t bytes = call_bytes(call), staged = staged_of_small(bytes);

    if (staged) {
        dt_copy(dt_round_staging(s, s->me), in, staged);
        dt_round_demote(s);
    }
    dt_call_match_post(s, call, in, bytes - staged);
    dt_round_publish(s, DT_IN);
}

void dt_shm_publish_small(struct dt_shm *s, const struct dt_call *call, const void *in)
{
    dt_round_join(s, staged_of_small(call_bytes(call)));
    publish_small(s, call, in);
}

dt_result_t dt_shm_all_reduce_small(struct dt_shm *s, const struct dt_call *call, const void *in,
                                    void *out, int divisor)
{
    dt_result_t r = dt_call_match_others(s, true);

    if (r == DT_OK && call->count && out)
        reduce_all_ranks(s, call, in, out, divisor, staged_of_small(call_bytes(call)) > 0);
    return r;
}

/* ---- reductions ---- */

/* In one round: each rank reduces all data for itself. */
static dt_result_t reduce_small(struct dt_shm *s, const struct dt_chunk *c)
{
    dt_result_t r = dt_round_begin(s, staged_of_small(c->bytes));

    if (r != DT_OK)
        return r;
    publish_small(s, c->call, c->in);
    return dt_shm_all_reduce_small(s, c->call, c->in, dt_chunk_is_for(c, s->me) ? c->out : NULL,
                                   c->divisor);
}

/* terms: NULL for a later chunk, and for the first one when it is staged late. */
static dt_result_t publish_chunk(struct dt_shm *s, const struct dt_chunk *c,
                                 const struct dt_reduceopen_terms *terms)
{
    dt_result_t r = dt_round_begin(s, c->bytes);

    if (r != DT_OK)
        return r;
    if (!terms || !dt_reduceopen_offers(terms))
        stage_for_others(s, c);
    if (terms)
        dt_call_match_post(s, c->call, terms, sizeof *terms);
    return dt_call_match(s, terms != NULL);
}

static dt_result_t finish_chunk(struct dt_shm *s, const struct dt_chunk *c)
{
    if (c->small) {
        if (dt_chunk_is_for(c, s->me))
            reduce_all_ranks(s, c->call, c->in, c->out, c->divisor, true);
        return DT_OK;
    }
    place_block(s, c);
    dt_round_publish(s, DT_REDUCED);
    return dt_chunk_is_for(c, s->me) ? collect_blocks(s, c) : DT_OK;
}

static dt_result_t reduce_chunk(struct dt_shm *s, const struct dt_chunk *c)
{
    dt_result_t r = publish_chunk(s, c, NULL);

    return r == DT_OK ? finish_chunk(s, c) : r;
}

static size_t least_reduced(const struct dt_shm *s, const size_t *done)
{
    size_t least = done[0];

    for (uint32_t i = 1; i < s->n; i++)
        least = dt_min(least, done[i]);
    return least;
}

/* Reduces data that all ranks stage. */
static dt_result_t reduce_staged(struct dt_shm *s, struct dt_chunk *whole, size_t step,
                                 const struct dt_reduceopen_end *end)
{
    size_t at = least_reduced(s, end->done);
    dt_result_t r = DT_OK;

    whole->done = end->done;
    whole->folded = end->folded;
    if (end->staged) {
        const struct dt_chunk c = dt_chunk_cut(s, whole, 0, step);

        r = finish_chunk(s, &c);
        at = c.bytes;
    }
    for (; r == DT_OK && at < whole->bytes; at += step) {
        const struct dt_chunk c = dt_chunk_cut(s, whole, at, step);

        r = reduce_chunk(s, &c);
    }
    return r;
}

/* A rank that offers its buffer does not stage. If other ranks turn out to stage, it stages the
 * first chunk late. */
static dt_result_t reduce_chunks(struct dt_shm *s, struct dt_chunk *whole)
{
    size_t step = dt_round_most(s), done[s->n];
    const struct dt_chunk first = dt_chunk_cut(s, whole, 0, step);
    struct dt_reduceopen_terms mine = dt_reduceopen_offer(s, whole);
    struct dt_reduceopen_end end = { .done = done };
    dt_result_t r = publish_chunk(s, &first, &mine);

    if (r == DT_OK)
        r = dt_reduceopen(s, whole, &mine, step, &end);
    if (r != DT_OK && dt_reduceopen_offers(&mine) && !end.quiet)
        dt_reduceopen_leave(s, whole, &mine);
    return r == DT_OK && !end.over ? reduce_staged(s, whole, step, &end) : r;
}

/* whole: the reduction as one chunk. */
static dt_result_t reduce_whole(struct dt_shm *s, struct dt_chunk *whole)
{
    dt_result_t r;

    whole->small = one_sync_is_faster(s, whole->bytes);
    whole->huge = whole->bytes >= s->tuning->shm_huge && whole->in != whole->out;
    if (takes_small(s, whole->bytes))
        return reduce_small(s, whole);
    if (!whole->small)
        s->algorithm = "shm-blocks";
    r = reduce_chunks(s, whole);
    if (whole->huge)
        dt_stream_settle();
    return r;
}

dt_result_t dt_shm_all_reduce(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out)
{
    struct dt_chunk whole = { .in = in,
                              .out = out,
                              .bytes = call_bytes(call),
                              .divisor = call->op == DT_AVG ? (int)s->n : 1,
                              .root = DT_CHUNK_EVERYBODY,
                              .call = call };

    return reduce_whole(s, &whole);
}

dt_result_t dt_shm_reduce(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                          uint32_t root, int divisor)
{
    struct dt_chunk whole = { .in = in,
                              .out = out,
                              .bytes = call_bytes(call),
                              .divisor = divisor,
                              .root = root,
                              .call = call };

    return reduce_whole(s, &whole);
}

/* ---- broadcast ---- */

/* Root's buffer, if all ranks can access it, as root's post says in the first round. For small data
 * root does not offer it, so that root need not wait for readers. */
static struct dt_place *shared_place(const struct dt_shm *s, uint32_t root)
{
    return (struct dt_place *)dt_round_post(s, root)->data;
}

static dt_result_t send_broadcast(struct dt_shm *s, const uint8_t *buf, size_t bytes)
{
    struct dt_place place = { 0 };
    size_t at = 0, most = dt_round_most(s);

    if (bytes >= DT_SEGMENT_LEAST)
        place = dt_segment_place(s->comm, buf, bytes);
    if (place.segment)
        s->algorithm = "shm-mapped";
    do {
        size_t m = bytes - at < most ? bytes - at : most;
        dt_result_t r = dt_round_begin(s, m);

        if (r != DT_OK)
            return r;
        if (at == 0)
            *shared_place(s, s->me) = place;
        if (m && !place.segment) {
            dt_copy(dt_round_staging(s, s->me), buf + at, m);
            dt_round_demote(s);
        }
        dt_round_publish(s, DT_LEFT);
        at += m;
    } while (at < bytes && !place.segment);
    return place.segment ? dt_round_await_all(s, DT_LEFT) : DT_OK;
}

static dt_result_t copy_mapped_broadcast(struct dt_shm *s, void *buf, struct dt_place place,
                                         size_t bytes, uint32_t root)
{
    const uint8_t *from;
    dt_result_t r;

    s->algorithm = "shm-mapped";
    dt_segment_hold();
    from = dt_segment_find(place);
    if (from)
        dt_shm_copy(s, buf, from, bytes);
    dt_segment_release();
    r = from ? dt_shm_check(s) : dt_coll_error(s->coll_error, DT_ERR_INTERNAL, s->ranks[root]);
    if (r == DT_OK)
        dt_round_publish(s, DT_LEFT);
    return r;
}

/* Root may be one round ahead of the slowest reader. */
static dt_result_t receive_broadcast(struct dt_shm *s, uint8_t *buf, size_t bytes, uint32_t root)
{
    size_t at = 0, most = dt_round_most(s);

    do {
        size_t m = bytes - at < most ? bytes - at : most;
        dt_result_t r;

        dt_round_join(s, m);
        r = dt_round_await(s, root, DT_LEFT);
        if (r != DT_OK)
            return r;
        if (at == 0 && shared_place(s, root)->segment)
            return copy_mapped_broadcast(s, buf, *shared_place(s, root), bytes, root);
        if (m)
            dt_copy(buf + at, dt_round_staging(s, root), m);
        dt_round_publish(s, DT_LEFT);
        at += m;
    } while (at < bytes);
    return DT_OK;
}

dt_result_t dt_shm_broadcast(struct dt_shm *s, void *buf, size_t bytes, uint32_t root)
{
    if (s->n == 1)
        return DT_OK;
    return s->me == root ? send_broadcast(s, buf, bytes) : receive_broadcast(s, buf, bytes, root);
}
