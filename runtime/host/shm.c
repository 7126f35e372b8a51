#include "runtime/host/shm.h"

#include <string.h>

#include "runtime/host/reduce.h"
#include "runtime/host/rounds.h"

enum {
    SMALL = 16 * 1024,        /* up to here everybody reduces everything: one synchronisation */
    SMALL_CROWDED = 4 * 1024, /* likewise, when ranks share CPUs */
    SLICE_BYTES = 128, /* slices begin at multiples: no two ranks write one cache line pair */
};

static uint8_t *half(const struct dt_shm *s, uint32_t rank)
{
    return dt_round_half(s, rank);
}

/* To be followed by meet at once: peers look at the line all the time, and would fetch it between
 * two stores that stood further apart. */
static void post(struct dt_shm *s, const struct dt_call *call, const void *data, size_t bytes)
{
    struct dt_hostshm_post *post = dt_round_post(s, s->me);
    uint64_t signature = dt_call_signature(call);

    s->map.ranks[s->me].calls[s->round & 1] = *call;
    if (bytes)
        memcpy(post->data, data, bytes);
    post->signature = signature;
}

static dt_result_t check(struct dt_shm *s)
{
    uint64_t mine = dt_round_post(s, s->me)->signature;

    for (uint32_t i = 0; i < s->n; i++) {
        if (dt_round_post(s, i)->signature != mine) {
            dt_trouble(s->trouble, DT_ERR_MISMATCH, s->ranks[i]);
            s->trouble->theirs = s->map.ranks[i].calls[s->round & 1];
            return DT_ERR_MISMATCH;
        }
    }
    return DT_OK;
}

/* Everybody's data are there. first: this is the round in which the call was posted. */
static dt_result_t meet(struct dt_shm *s, bool first)
{
    dt_result_t r;

    dt_round_publish(s, DT_IN);
    r = dt_round_await_all(s, DT_IN);
    return r == DT_OK && first ? check(s) : r;
}

dt_result_t dt_shm_begin(struct dt_shm *s, const struct dt_call *call)
{
    dt_result_t r = dt_round_begin(s);

    if (r != DT_OK)
        return r;
    post(s, call, NULL, 0);
    return meet(s, true);
}

/* A chunk of a reduction: count elements that stand at "in", to go to "out". */
struct chunk {
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    size_t slice; /* bytes of every rank's slice but the last ones */
    int divisor;  /* of the sums: an average of this host's ranks alone is made at once */
    const struct dt_call *call;
};

static size_t slice_at(const struct chunk *c, uint32_t rank)
{
    size_t at = c->slice * rank;

    return at < c->bytes ? at : c->bytes;
}

static size_t slice_bytes(const struct chunk *c, uint32_t rank)
{
    return slice_at(c, rank + 1) - slice_at(c, rank);
}

/* Folds a part of all ranks' data, bytes long, that stand at src. The result goes to dst, and to
 * also where that is not NULL. */
static void fold(const struct dt_shm *s, const struct chunk *c, void *dst, void *also,
                 const void *const *src, size_t bytes)
{
    dt_dtype_t dtype = (dt_dtype_t)c->call->dtype;
    struct dt_fold f = { .dst = dst,
                         .also = also,
                         .src = src,
                         .n = s->n,
                         .count = bytes / dt_dtype_size(dtype),
                         .divisor = c->divisor };

    dt_reduce(&f, dtype, (dt_op_t)c->call->op);
}

static int divisor_of(const struct dt_shm *s, const struct dt_call *call, bool only_root)
{
    return call->op == DT_AVG && !only_root ? (int)s->n : 1;
}

/* Where a rank's data of a small call stand: with its progress, if they fit. */
static uint8_t *small_data(const struct dt_shm *s, uint32_t rank, size_t bytes)
{
    return bytes <= DT_HOSTSHM_INLINE ? dt_round_post(s, rank)->data : half(s, rank);
}

/* Everybody shows everything and folds it for itself. */
static dt_result_t reduce_small(struct dt_shm *s, const struct dt_call *call, const void *in,
                                void *out, bool only_root)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    struct chunk c = { in, out, bytes, 0, divisor_of(s, call, only_root), call };
    const void *src[s->n];
    dt_result_t r = dt_round_begin(s);

    if (r != DT_OK)
        return r;
    if (bytes > DT_HOSTSHM_INLINE)
        memcpy(half(s, s->me), in, bytes);
    post(s, call, in, bytes > DT_HOSTSHM_INLINE ? 0 : bytes);
    r = meet(s, true);
    if (r != DT_OK || bytes == 0 || (only_root && s->me != 0))
        return r;
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = small_data(s, i, bytes);
    fold(s, &c, out, NULL, src, bytes);
    return DT_OK;
}

static void stage_others(const struct dt_shm *s, const struct chunk *c)
{
    size_t at = slice_at(c, s->me);
    size_t after = slice_at(c, s->me + 1);

    memcpy(half(s, s->me), c->in, at);
    memcpy(half(s, s->me) + after, c->in + after, c->bytes - after);
}

static dt_result_t collect(struct dt_shm *s, const struct chunk *c)
{
    for (uint32_t i = 1; i < s->n; i++) {
        uint32_t peer = (s->me + i) % s->n;
        size_t at = slice_at(c, peer);
        dt_result_t r = dt_round_await(s, peer, DT_REDUCED);

        if (r != DT_OK)
            return r;
        memcpy(c->out + at, half(s, peer) + at, slice_bytes(c, peer));
    }
    return DT_OK;
}

/* Everybody stages the slices of the others, folds its own, and collects theirs. */
static dt_result_t reduce_chunk(struct dt_shm *s, const struct chunk *c, bool first, bool only_root)
{
    size_t at = slice_at(c, s->me);
    size_t bytes = slice_bytes(c, s->me);
    bool collects = !only_root || s->me == 0;
    dt_result_t r = dt_round_begin(s);
    uint8_t *dst = collects ? c->out + at : half(s, s->me) + at;
    const void *src[s->n];

    if (r != DT_OK)
        return r;
    stage_others(s, c);
    if (first)
        post(s, c->call, NULL, 0);
    r = meet(s, first);
    if (r != DT_OK)
        return r;
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = (i == s->me ? c->in : half(s, i)) + at;
    fold(s, c, dst, only_root ? NULL : half(s, s->me) + at, src, bytes);
    dt_round_publish(s, DT_REDUCED);
    return collects ? collect(s, c) : DT_OK;
}

static dt_result_t reduce(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                          bool only_root)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    size_t step = s->map.half;

    if (bytes <= (s->spins ? SMALL : SMALL_CROWDED))
        return reduce_small(s, call, in, out, only_root);
    for (size_t at = 0; at < bytes; at += step) {
        size_t m = bytes - at < step ? bytes - at : step;
        size_t slice = ((m + s->n - 1) / s->n + SLICE_BYTES - 1) / SLICE_BYTES * SLICE_BYTES;
        struct chunk c = { (const uint8_t *)in + at,
                           (uint8_t *)out + at,
                           m,
                           slice,
                           divisor_of(s, call, only_root),
                           call };
        dt_result_t r = reduce_chunk(s, &c, at == 0, only_root);

        if (r != DT_OK)
            return r;
    }
    return DT_OK;
}

dt_result_t dt_shm_all_reduce(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out)
{
    return reduce(s, call, in, out, false);
}

dt_result_t dt_shm_reduce(struct dt_shm *s, const struct dt_call *call, const void *in, void *out)
{
    return reduce(s, call, in, out, true);
}

/* One round: root may run one ahead of the slowest reader. */
static dt_result_t share_chunk(struct dt_shm *s, uint8_t *buf, size_t bytes, uint32_t root)
{
    dt_result_t r;

    if (s->me == root) {
        r = dt_round_begin(s);
        if (r == DT_OK && bytes)
            memcpy(half(s, root), buf, bytes);
    } else {
        dt_round_join(s);
        r = dt_round_await(s, root, DT_LEFT);
        if (r == DT_OK && bytes)
            memcpy(buf, half(s, root), bytes);
    }
    if (r == DT_OK)
        dt_round_publish(s, DT_LEFT);
    return r;
}

dt_result_t dt_shm_share(struct dt_shm *s, void *buf, size_t bytes, uint32_t root)
{
    size_t at = 0;

    if (s->n == 1)
        return DT_OK;
    do {
        size_t m = bytes - at < s->map.half ? bytes - at : s->map.half;
        dt_result_t r = share_chunk(s, (uint8_t *)buf + at, m, root);

        if (r != DT_OK)
            return r;
        at += m;
    } while (at < bytes);
    return DT_OK;
}
