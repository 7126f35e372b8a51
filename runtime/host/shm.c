#include "runtime/host/shm.h"

#include <stdalign.h>
#include <string.h>

#include "runtime/host/meet.h"
#include "runtime/host/reduce.h"
#include "runtime/host/rounds.h"

enum {
    SLICE_BYTES = 128,      /* slices begin at multiples: no two ranks write one cache line pair */
    BLOCK_BYTES = 8 * 1024, /* of a result: stored a second time while it is in the first cache */
};

static const uint32_t EVERYBODY = UINT32_MAX;

dt_result_t dt_shm_begin(struct dt_shm *s, const struct dt_call *call)
{
    dt_result_t r = dt_round_begin(s, 0);

    if (r != DT_OK)
        return r;
    dt_meet_post(s, call, NULL, 0);
    return dt_meet(s, true);
}

/* A chunk of a reduction: count elements that stand at "in", to go to "out". */
struct chunk {
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    size_t slice; /* bytes of every rank's slice but the last ones */
    bool huge;    /* no cache keeps the whole result */
    int divisor;
    uint32_t root; /* who is to have the result, or EVERYBODY */
    const struct dt_call *call;
};

static bool collects(const struct dt_shm *s, const struct chunk *c)
{
    return c->root == EVERYBODY || c->root == s->me;
}

static size_t slice_at(const struct chunk *c, uint32_t rank)
{
    size_t at = c->slice * rank;

    return at < c->bytes ? at : c->bytes;
}

static size_t slice_bytes(const struct chunk *c, uint32_t rank)
{
    return slice_at(c, rank + 1) - slice_at(c, rank);
}

/* Folds a part of all ranks' data, bytes long, that stand at src. */
static void fold(const struct dt_shm *s, const struct chunk *c, void *dst, const void *const *src,
                 size_t bytes)
{
    dt_dtype_t dtype = (dt_dtype_t)c->call->dtype;
    struct dt_fold f = { .dst = dst,
                         .src = src,
                         .n = s->n,
                         .count = bytes / dt_dtype_size(dtype),
                         .divisor = c->divisor };

    dt_fold(&f, dtype, (dt_op_t)c->call->op);
}

/* Where a rank's data of a small call stand: with its progress, if they fit. */
static uint8_t *small_data(const struct dt_shm *s, uint32_t rank, size_t bytes)
{
    return bytes <= DT_HOSTSHM_INLINE ? dt_round_post(s, rank)->data : dt_round_staging(s, rank);
}

/* Everybody shows everything, and folds it for itself. */
static dt_result_t reduce_small(struct dt_shm *s, const struct chunk *c)
{
    size_t bytes = c->bytes;
    const void *src[s->n];
    dt_result_t r = dt_round_begin(s, bytes);

    if (r != DT_OK)
        return r;
    if (bytes > DT_HOSTSHM_INLINE)
        dt_stream_copy(&s->stream, dt_round_staging(s, s->me), c->in, bytes);
    dt_meet_post(s, c->call, c->in, bytes > DT_HOSTSHM_INLINE ? 0 : bytes);
    r = dt_meet(s, true);
    if (r != DT_OK || bytes == 0 || !collects(s, c))
        return r;
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = small_data(s, i, bytes);
    fold(s, c, c->out, src, bytes);
    return DT_OK;
}

static void stage_others(struct dt_shm *s, const struct chunk *c)
{
    uint8_t *mine = dt_round_staging(s, s->me);
    size_t at = slice_at(c, s->me), after = slice_at(c, s->me + 1);

    dt_stream_copy(&s->stream, mine, c->in, at);
    dt_stream_copy(&s->stream, mine + after, c->in + after, c->bytes - after);
}

static void keep(const struct chunk *c, size_t at, const void *result, size_t bytes)
{
    if (c->huge)
        dt_stream_past_caches(c->out + at, result, bytes);
    else
        memcpy(c->out + at, result, bytes);
}

/* Folds this rank's slice, block by block: each goes to the output, to the staging, or to both. */
static void fold_slice(struct dt_shm *s, const struct chunk *c)
{
    alignas(DT_HOSTSHM_LINE) uint8_t block[BLOCK_BYTES];
    size_t end = slice_at(c, s->me + 1);

    for (size_t at = slice_at(c, s->me); at < end; at += BLOCK_BYTES) {
        size_t bytes = end - at < BLOCK_BYTES ? end - at : BLOCK_BYTES;
        const void *src[s->n];

        for (uint32_t i = 0; i < s->n; i++)
            src[i] = (i == s->me ? c->in : dt_round_staging(s, i)) + at;
        fold(s, c, block, src, bytes);
        if (collects(s, c))
            keep(c, at, block, bytes);
        if (c->root != s->me)
            dt_stream_copy(&s->stream, dt_round_staging(s, s->me) + at, block, bytes);
    }
}

static dt_result_t collect(struct dt_shm *s, const struct chunk *c)
{
    for (uint32_t i = 1; i < s->n; i++) {
        uint32_t peer = (s->me + i) % s->n;
        size_t at = slice_at(c, peer);
        dt_result_t r = dt_round_await(s, peer, DT_REDUCED);

        if (r != DT_OK)
            return r;
        keep(c, at, dt_round_staging(s, peer) + at, slice_bytes(c, peer));
    }
    return DT_OK;
}

/* Everybody stages the slices of the others, folds its own, and collects theirs. */
static dt_result_t reduce_chunk(struct dt_shm *s, const struct chunk *c, bool first)
{
    dt_result_t r = dt_round_begin(s, c->bytes);

    if (r != DT_OK)
        return r;
    stage_others(s, c);
    if (first)
        dt_meet_post(s, c->call, NULL, 0);
    r = dt_meet(s, first);
    if (r != DT_OK)
        return r;
    fold_slice(s, c);
    dt_round_publish(s, DT_REDUCED);
    return collects(s, c) ? collect(s, c) : DT_OK;
}

/* Up to how many bytes one synchronisation is the faster way. */
static size_t small(const struct dt_shm *s)
{
    size_t most = s->crowded ? s->tuning->shm_small_crowded : s->tuning->shm_small;

    return most < dt_round_most(s) ? most : dt_round_most(s);
}

/* whole: the reduction as one chunk. */
static dt_result_t reduce(struct dt_shm *s, const struct chunk *whole)
{
    size_t step = dt_round_most(s);

    if (whole->bytes <= small(s))
        return reduce_small(s, whole);
    for (size_t at = 0; at < whole->bytes; at += step) {
        size_t m = whole->bytes - at < step ? whole->bytes - at : step;
        struct chunk c = *whole;

        c.in += at;
        c.out = collects(s, whole) ? c.out + at : NULL;
        c.bytes = m;
        c.huge = whole->bytes >= s->tuning->shm_huge;
        c.slice = ((m + s->n - 1) / s->n + SLICE_BYTES - 1) / SLICE_BYTES * SLICE_BYTES;
        dt_result_t r = reduce_chunk(s, &c, at == 0);

        if (r != DT_OK)
            return r;
    }
    return DT_OK;
}

static size_t bytes_of(const struct dt_call *call)
{
    return call->count * dt_dtype_size((dt_dtype_t)call->dtype);
}

dt_result_t dt_shm_all_reduce(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out)
{
    const struct chunk whole = { .in = in,
                                 .out = out,
                                 .bytes = bytes_of(call),
                                 .divisor = call->op == DT_AVG ? (int)s->n : 1,
                                 .root = EVERYBODY,
                                 .call = call };

    return reduce(s, &whole);
}

dt_result_t dt_shm_reduce(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                          uint32_t root, int divisor)
{
    const struct chunk whole = { .in = in,
                                 .out = out,
                                 .bytes = bytes_of(call),
                                 .divisor = divisor,
                                 .root = root,
                                 .call = call };

    return reduce(s, &whole);
}

/* One round: root may run one ahead of the slowest reader. */
static dt_result_t share_chunk(struct dt_shm *s, uint8_t *buf, size_t bytes, uint32_t root)
{
    dt_result_t r;

    if (s->me == root) {
        r = dt_round_begin(s, bytes);
        if (r == DT_OK && bytes)
            dt_stream_copy(&s->stream, dt_round_staging(s, root), buf, bytes);
    } else {
        dt_round_join(s, bytes);
        r = dt_round_await(s, root, DT_LEFT);
        if (r == DT_OK && bytes)
            memcpy(buf, dt_round_staging(s, root), bytes);
    }
    if (r == DT_OK)
        dt_round_publish(s, DT_LEFT);
    return r;
}

dt_result_t dt_shm_share(struct dt_shm *s, void *buf, size_t bytes, uint32_t root)
{
    size_t at = 0, most = dt_round_most(s);

    if (s->n == 1)
        return DT_OK;
    do {
        size_t m = bytes - at < most ? bytes - at : most;
        dt_result_t r = share_chunk(s, (uint8_t *)buf + at, m, root);

        if (r != DT_OK)
            return r;
        at += m;
    } while (at < bytes);
    return DT_OK;
}
