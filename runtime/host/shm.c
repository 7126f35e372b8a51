#include "runtime/host/shm.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "runtime/host/meet.h"
#include "runtime/host/reduce.h"
#include "runtime/host/rounds.h"
#include "runtime/host/segment.h"

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

dt_result_t dt_shm_begin_adding(struct dt_shm *s, const struct dt_call *call, uint64_t *word)
{
    dt_result_t r = dt_round_begin(s, 0);

    if (r != DT_OK)
        return r;
    dt_meet_post(s, call, word, sizeof *word);
    r = dt_meet(s, true);
    for (uint32_t i = 0; r == DT_OK && i < s->n; i++) {
        uint64_t theirs;

        memcpy(&theirs, dt_round_post(s, i)->data, sizeof theirs);
        *word += i == s->me ? 0 : theirs;
    }
    return r;
}

/* A chunk of a reduction: count elements that stand at "in", to go to "out". */
struct chunk {
    const uint8_t *in;
    uint8_t *out;
    size_t bytes;
    size_t slice; /* bytes of every rank's slice but the last ones */
    bool few;     /* the whole is: everybody folds all of it */
    bool huge;    /* no cache keeps the whole result, nor has it what stood there */
    int divisor;
    uint32_t root; /* who is to have the result, or EVERYBODY */
    const struct dt_call *call;
};

static bool collects(const struct dt_shm *s, const struct chunk *c)
{
    return c->root == EVERYBODY || c->root == s->me;
}

/* The bytes of the whole from "at" on, at most so many. */
static struct chunk cut(const struct dt_shm *s, const struct chunk *whole, size_t at, size_t most)
{
    struct chunk c = *whole;

    c.in += at;
    c.out = collects(s, whole) ? c.out + at : NULL;
    c.bytes = whole->bytes - at < most ? whole->bytes - at : most;
    c.slice = ((c.bytes + s->n - 1) / s->n + SLICE_BYTES - 1) / SLICE_BYTES * SLICE_BYTES;
    return c;
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

/* ---- in staging: everybody folds all of few bytes for itself, or a slice of many for all ---- */

/* staged: what others give stands in the staging, else in their lines. This rank's own data are
 * taken from where they came, for others read its line and staging now. */
static void fold_all(const struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                     int divisor, bool staged)
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

/* What others fold. */
static void stage(struct dt_shm *s, const struct chunk *c)
{
    uint8_t *mine = dt_round_staging(s, s->me);
    size_t at = slice_at(c, s->me), after = slice_at(c, s->me + 1);

    if (c->few) {
        memcpy(mine, c->in, c->bytes);
        return;
    }
    dt_stream_copy(&s->stream, mine, c->in, at);
    dt_stream_copy(&s->stream, mine + after, c->in + after, c->bytes - after);
}

static void keep(const struct chunk *c, void *out, const void *result, size_t bytes)
{
    if (c->huge)
        dt_stream_past_caches(out, result, bytes);
    else
        memcpy(out, result, bytes);
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
            keep(c, c->out + at, block, bytes);
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
        keep(c, c->out + at, dt_round_staging(s, peer) + at, slice_bytes(c, peer));
    }
    return DT_OK;
}

/* ---- where they stand ---- */

/* What every rank says in the first round. One that is to have no result has a place for it. */
struct terms {
    struct dt_place in;
    struct dt_place out;
};

static_assert(sizeof(struct terms) <= DT_HOSTSHM_INLINE, "travels with the signature");

/* Among ranks that share CPUs nothing is worth a second synchronisation of few bytes. */
static bool may_open(const struct dt_shm *s, size_t bytes, bool few)
{
    return bytes >= s->tuning->shm_open && !(s->crowded && few);
}

static struct terms own_terms(const struct dt_shm *s, const struct chunk *whole)
{
    struct terms t = { 0 };

    if (!may_open(s, whole->bytes, whole->few))
        return t;
    t.in = dt_segment_place(s->comm, whole->in, whole->bytes);
    t.out = collects(s, whole) ? dt_segment_place(s->comm, whole->out, whole->bytes) : t.in;
    return t;
}

static bool is_open(const struct terms *t)
{
    return t->in.segment && t->out.segment;
}

/* Of how many ranks all others reach the data. */
static uint32_t count_open(const struct dt_shm *s, const struct chunk *whole, struct terms *terms)
{
    uint32_t open = 0;

    if (!may_open(s, whole->bytes, whole->few))
        return 0;
    for (uint32_t i = 0; i < s->n; i++) {
        memcpy(&terms[i], dt_round_post(s, i)->data, sizeof *terms);
        open += is_open(&terms[i]);
    }
    return open;
}

/* Folds this rank's slice of what stands at "in", block by block, to where all have their "out".
 * False: not all of it, for all has been stopped. */
static bool fold_for_all(const struct dt_shm *s, const struct chunk *c, uint8_t *const *in,
                         uint8_t *const *out)
{
    alignas(DT_HOSTSHM_LINE) uint8_t block[BLOCK_BYTES];
    size_t end = slice_at(c, s->me + 1);

    for (size_t at = slice_at(c, s->me); at < end; at += BLOCK_BYTES) {
        size_t bytes = end - at < BLOCK_BYTES ? end - at : BLOCK_BYTES;
        const void *src[s->n];

        for (uint32_t i = 0; i < s->n; i++)
            src[i] = in[i] + at;
        fold(s, c, block, src, bytes);
        if (dt_hostshm_stopped(&s->map, NULL))
            return false;
        for (uint32_t i = 0; i < s->n; i++) {
            if (c->root == EVERYBODY || c->root == i)
                keep(c, out[i] + at, block, bytes);
        }
    }
    return true;
}

/* Waits for those that may be writing to this rank's memory when its call fails, and shows them
 * that it does not write to theirs. Who has come to this call sees, before it writes, that all has
 * been stopped, unless all had come. Their lines are read first: they keep them while this rank has
 * not left. */
static void leave_open(struct dt_shm *s, const struct chunk *whole, struct terms *terms)
{
    bool begun;

    dt_shm_settle(s);
    begun = dt_round_has_come(s, DT_IN) && dt_meet_agrees(s) && count_open(s, whole, terms) == s->n;
    dt_round_publish(s, DT_LEFT);
    if (begun)
        dt_round_outlast(s, DT_REDUCED);
}

/* Who leaves the round of such a call has failed in it: others may lack its slice. */
static dt_result_t await_slices(struct dt_shm *s)
{
    dt_result_t r = dt_round_await_all(s, DT_REDUCED);

    return r == DT_OK && dt_hostshm_stopped(&s->map, NULL) && dt_round_is_left(s) ? dt_shm_check(s)
                                                                                  : r;
}

/* All data stand where all reach them. They are everybody's own again when all have folded. */
static dt_result_t reduce_open(struct dt_shm *s, const struct chunk *whole,
                               const struct terms *terms)
{
    const struct chunk c = cut(s, whole, 0, whole->bytes);
    uint8_t *in[s->n], *out[s->n];
    dt_result_t r = DT_OK;

    s->way = "shm-mapped";
    dt_segment_hold();
    for (uint32_t i = 0; i < s->n; i++) {
        in[i] = dt_segment_find(terms[i].in);
        out[i] = dt_segment_find(terms[i].out);
        if (!in[i] || !out[i])
            r = dt_trouble(s->trouble, DT_ERR_INTERNAL, s->ranks[i]);
    }
    if (r == DT_OK && !fold_for_all(s, &c, in, out))
        r = dt_shm_check(s);
    if (c.huge)
        dt_stream_settle();
    if (r == DT_OK) {
        dt_round_publish(s, DT_REDUCED);
        r = await_slices(s);
    }
    dt_segment_release();
    return r;
}

/* ---- few bytes, that travel in the lines or stand in the staging ---- */

/* Whether one synchronisation is the faster way. */
static bool are_few(const struct dt_shm *s, size_t bytes)
{
    size_t most = s->crowded ? s->tuning->shm_small_crowded : s->tuning->shm_small;

    return bytes <= most && bytes <= dt_round_most(s);
}

static bool takes_few(const struct dt_shm *s, size_t bytes)
{
    return are_few(s, bytes) && !may_open(s, bytes, true);
}

/* Who showed data after a stop could let others end a call well that fails here. */
bool dt_shm_shows_few(const struct dt_shm *s, size_t bytes)
{
    return takes_few(s, bytes) && dt_round_is_free(s) && !dt_hostshm_stopped(&s->map, NULL);
}

static size_t bytes_of(const struct dt_call *call)
{
    return call->count * dt_dtype_size((dt_dtype_t)call->dtype);
}

/* Of so many, those that stand in the staging. */
static size_t staged_of_few(size_t bytes)
{
    return bytes <= DT_HOSTSHM_INLINE ? 0 : bytes;
}

/* In the round that has begun. */
static void show_few(struct dt_shm *s, const struct dt_call *call, const void *in)
{
    size_t bytes = bytes_of(call), staged = staged_of_few(bytes);

    if (staged)
        memcpy(dt_round_staging(s, s->me), in, staged);
    dt_meet_post(s, call, in, bytes - staged);
    dt_round_publish(s, DT_IN);
}

void dt_shm_show_few(struct dt_shm *s, const struct dt_call *call, const void *in)
{
    dt_round_join(s, staged_of_few(bytes_of(call)));
    show_few(s, call, in);
}

dt_result_t dt_shm_fold_few(struct dt_shm *s, const struct dt_call *call, const void *in, void *out,
                            int divisor)
{
    dt_result_t r = dt_meet_others(s, true);

    if (r == DT_OK && call->count && out)
        fold_all(s, call, in, out, divisor, staged_of_few(bytes_of(call)) > 0);
    return r;
}

/* ---- reductions ---- */

/* In one round, of which everybody folds the data for itself. */
static dt_result_t reduce_few(struct dt_shm *s, const struct chunk *c)
{
    dt_result_t r = dt_round_begin(s, staged_of_few(c->bytes));

    if (r != DT_OK)
        return r;
    show_few(s, c->call, c->in);
    return dt_shm_fold_few(s, c->call, c->in, collects(s, c) ? c->out : NULL, c->divisor);
}

/* terms: of the first chunk; NULL: it is a later one, or comes again. */
static dt_result_t show_chunk(struct dt_shm *s, const struct chunk *c, const struct terms *terms)
{
    dt_result_t r = dt_round_begin(s, c->bytes);

    if (r != DT_OK)
        return r;
    if (!terms || !is_open(terms))
        stage(s, c);
    if (terms)
        dt_meet_post(s, c->call, terms, sizeof *terms);
    return dt_meet(s, terms != NULL);
}

static dt_result_t finish_chunk(struct dt_shm *s, const struct chunk *c)
{
    if (c->few) {
        if (collects(s, c))
            fold_all(s, c->call, c->in, c->out, c->divisor, true);
        return DT_OK;
    }
    fold_slice(s, c);
    dt_round_publish(s, DT_REDUCED);
    return collects(s, c) ? collect(s, c) : DT_OK;
}

/* Unless nothing need be staged. Where that holds for some ranks, but not for all, these stage the
 * first chunk late. */
static dt_result_t reduce_chunks(struct dt_shm *s, const struct chunk *whole)
{
    size_t step = dt_round_most(s);
    struct terms all[s->n], mine = own_terms(s, whole);
    struct chunk c = cut(s, whole, 0, step);
    dt_result_t r = show_chunk(s, &c, &mine);
    uint32_t open = r == DT_OK ? count_open(s, whole, all) : 0;

    if (open == s->n)
        r = reduce_open(s, whole, all);
    if (r != DT_OK && is_open(&mine) && dt_round_has_shown(s, DT_IN) &&
        dt_hostshm_stopped(&s->map, NULL))
        leave_open(s, whole, all);
    if (r != DT_OK || open == s->n)
        return r;
    if (open)
        r = show_chunk(s, &c, NULL);
    if (r == DT_OK)
        r = finish_chunk(s, &c);
    for (size_t at = step; r == DT_OK && at < whole->bytes; at += step) {
        c = cut(s, whole, at, step);
        r = show_chunk(s, &c, NULL);
        if (r == DT_OK)
            r = finish_chunk(s, &c);
    }
    return r;
}

/* whole: the reduction as one chunk. */
static dt_result_t reduce(struct dt_shm *s, struct chunk *whole)
{
    dt_result_t r;

    whole->few = are_few(s, whole->bytes);
    whole->huge = whole->bytes >= s->tuning->shm_huge && whole->in != whole->out;
    if (!whole->few)
        s->way = "shm-slices";
    if (takes_few(s, whole->bytes))
        return reduce_few(s, whole);
    r = reduce_chunks(s, whole);
    if (whole->huge)
        dt_stream_settle();
    return r;
}

dt_result_t dt_shm_all_reduce(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out)
{
    struct chunk whole = { .in = in,
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
    struct chunk whole = { .in = in,
                           .out = out,
                           .bytes = bytes_of(call),
                           .divisor = divisor,
                           .root = root,
                           .call = call };

    return reduce(s, &whole);
}

/* ---- from root to all ---- */

/* Where root's buffer is for all, as its line says in the first round; of few bytes it says
 * nothing, for root may go on before others have them. */
static struct dt_place *shared_place(const struct dt_shm *s, uint32_t root)
{
    return (struct dt_place *)dt_round_post(s, root)->data;
}

static dt_result_t share_out(struct dt_shm *s, const uint8_t *buf, size_t bytes)
{
    struct dt_place place = { 0 };
    size_t at = 0, most = dt_round_most(s);

    if (bytes >= s->tuning->shm_open)
        place = dt_segment_place(s->comm, buf, bytes);
    if (place.segment)
        s->way = "shm-mapped";
    do {
        size_t m = bytes - at < most ? bytes - at : most;
        dt_result_t r = dt_round_begin(s, m);

        if (r != DT_OK)
            return r;
        if (at == 0)
            *shared_place(s, s->me) = place;
        if (m && !place.segment)
            dt_stream_copy(&s->stream, dt_round_staging(s, s->me), buf + at, m);
        dt_round_publish(s, DT_LEFT);
        at += m;
    } while (at < bytes && !place.segment);
    return place.segment ? dt_round_await_all(s, DT_LEFT) : DT_OK;
}

static dt_result_t copy_open(struct dt_shm *s, void *buf, struct dt_place place, size_t bytes,
                             uint32_t root)
{
    const uint8_t *from;
    dt_result_t r;

    s->way = "shm-mapped";
    dt_segment_hold();
    from = dt_segment_find(place);
    if (from)
        dt_shm_copy(s, buf, from, bytes);
    dt_segment_release();
    r = from ? dt_shm_check(s) : dt_trouble(s->trouble, DT_ERR_INTERNAL, s->ranks[root]);
    if (r == DT_OK)
        dt_round_publish(s, DT_LEFT);
    return r;
}

/* Root may be one round ahead of the slowest reader. */
static dt_result_t take_share(struct dt_shm *s, uint8_t *buf, size_t bytes, uint32_t root)
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
            return copy_open(s, buf, *shared_place(s, root), bytes, root);
        if (m)
            memcpy(buf + at, dt_round_staging(s, root), m);
        dt_round_publish(s, DT_LEFT);
        at += m;
    } while (at < bytes);
    return DT_OK;
}

dt_result_t dt_shm_share(struct dt_shm *s, void *buf, size_t bytes, uint32_t root)
{
    if (s->n == 1)
        return DT_OK;
    return s->me == root ? share_out(s, buf, bytes) : take_share(s, buf, bytes, root);
}
