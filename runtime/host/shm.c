#include "runtime/host/shm.h"

#include <sched.h>
#include <string.h>

#include "runtime/host/reduce.h"

enum {
    /* How far a rank is: 4 * round + one of these. */
    IN = 1,      /* its data stand in its staging */
    REDUCED = 2, /* its slice of the result does */
    OUT = 3,     /* it reads nobody's staging any more */

    SPINS = 2000, /* some tens of microseconds */
    YIELDS = 200,
    SMALL = 16 * 1024,        /* up to here everybody reduces everything: one synchronisation */
    SMALL_CROWDED = 4 * 1024, /* likewise, when ranks share CPUs */
    SLICE_BYTES = 128, /* slices begin at multiples: no two ranks write one cache line pair */
};

void dt_shm_start(struct dt_shm *s, unsigned cpus)
{
    s->spins = s->n <= cpus ? SPINS : 0;
    s->yields = YIELDS;
    s->round = 0;
    s->settled = 0;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint64_t reached(const struct dt_shm *s, uint32_t peer)
{
    return atomic_load_explicit(&s->map.ranks[peer].progress, memory_order_acquire);
}

/* The store must be seen before the sleepers are looked for, and a sleeper says so before it looks
 * again: with both in one total order, one of them sees the other. */
static void publish(struct dt_shm *s, unsigned phase)
{
    atomic_store_explicit(&s->map.ranks[s->me].progress, 4 * s->round + phase,
                          memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < s->n; i++) {
        if (atomic_load_explicit(&s->map.ranks[i].waits_for, memory_order_relaxed) == s->me + 1)
            dt_hostshm_ring(&s->map.ranks[i]);
    }
}

static void sleep_for(struct dt_shm *s, uint32_t peer, uint64_t target)
{
    struct dt_hostshm_rank *me = &s->map.ranks[s->me];
    uint32_t seen = atomic_load(&me->doorbell);

    atomic_store(&me->waits_for, peer + 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (reached(s, peer) < target && dt_hostshm_stopped(&s->map, NULL) == 0)
        dt_hostshm_sleep(me, seen);
    atomic_store_explicit(&me->waits_for, 0, memory_order_relaxed);
}

static dt_result_t await(struct dt_shm *s, uint32_t peer, uint64_t target)
{
    for (unsigned tries = 0; reached(s, peer) < target; tries++) {
        uint32_t culprit;
        int stopped = dt_hostshm_stopped(&s->map, &culprit);

        if (stopped)
            return dt_trouble(s->trouble, (dt_result_t)stopped, culprit);
        if (tries < s->spins)
            relax();
        else if (tries < s->spins + s->yields)
            sched_yield();
        else
            sleep_for(s, peer, target);
    }
    return DT_OK;
}

static dt_result_t await_all(struct dt_shm *s, uint64_t target)
{
    for (uint32_t i = 1; i < s->n && s->settled < target; i++) {
        dt_result_t r = await(s, (s->me + i) % s->n, target);

        if (r != DT_OK)
            return r;
    }
    if (s->settled < target)
        s->settled = target;
    return DT_OK;
}

/* Begins the next round: returns when this rank's half of the staging may be written. */
static dt_result_t next_round(struct dt_shm *s)
{
    s->round++;
    return s->round < 2 ? DT_OK : await_all(s, 4 * (s->round - 2) + OUT);
}

static uint8_t *half(const struct dt_shm *s, uint32_t rank)
{
    return dt_hostshm_staging(&s->map, rank, s->round & 1);
}

/* To be followed by publish. A slot is free again: whoever could read it has begun the call after.
 */
static void post(struct dt_shm *s, const struct dt_call *call)
{
    s->map.ranks[s->me].calls[call->number & 1] = *call;
}

static dt_result_t check(struct dt_shm *s, const struct dt_call *call)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct dt_call *theirs = &s->map.ranks[i].calls[call->number & 1];

        if (!dt_call_equal(call, theirs)) {
            dt_trouble(s->trouble, DT_ERR_MISMATCH, s->ranks[i]);
            s->trouble->theirs = *theirs;
            return DT_ERR_MISMATCH;
        }
    }
    return DT_OK;
}

static dt_result_t meet(struct dt_shm *s, const struct dt_call *call)
{
    dt_result_t r;

    publish(s, IN);
    r = await_all(s, 4 * s->round + IN);
    return r == DT_OK && call ? check(s, call) : r;
}

dt_result_t dt_shm_begin(struct dt_shm *s, const struct dt_call *call)
{
    dt_result_t r = next_round(s);

    if (r != DT_OK)
        return r;
    post(s, call);
    return meet(s, call);
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

/* Folds the part [at, at + bytes) of all ranks' data; own names this rank's, where it is not
 * staged. The result goes to dst, and to also where that is not NULL. */
static void fold(const struct dt_shm *s, const struct chunk *c, void *dst, void *also, size_t at,
                 size_t bytes, const uint8_t *own)
{
    const void *src[s->n];
    dt_dtype_t dtype = (dt_dtype_t)c->call->dtype;
    struct dt_fold f = { .dst = dst,
                         .also = also,
                         .src = src,
                         .n = s->n,
                         .count = bytes / dt_dtype_size(dtype),
                         .divisor = c->divisor };

    for (uint32_t i = 0; i < s->n; i++)
        src[i] = i == s->me && own ? own + at : half(s, i) + at;
    dt_reduce(&f, dtype, (dt_op_t)c->call->op);
}

static int divisor_of(const struct dt_shm *s, const struct dt_call *call, bool only_root)
{
    return call->op == DT_AVG && !only_root ? (int)s->n : 1;
}

/* Everybody stages everything and folds it for itself. */
static dt_result_t reduce_small(struct dt_shm *s, const struct dt_call *call, const void *in,
                                void *out, bool only_root)
{
    size_t bytes = call->count * dt_dtype_size((dt_dtype_t)call->dtype);
    struct chunk c = { in, out, bytes, 0, divisor_of(s, call, only_root), call };
    dt_result_t r = next_round(s);

    if (r != DT_OK)
        return r;
    post(s, call);
    if (c.bytes)
        memcpy(half(s, s->me), in, c.bytes);
    r = meet(s, call);
    if (r != DT_OK || c.bytes == 0 || (only_root && s->me != 0))
        return r;
    fold(s, &c, out, NULL, 0, c.bytes, NULL);
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
        dt_result_t r = await(s, peer, 4 * s->round + REDUCED);

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
    dt_result_t r = next_round(s);
    uint8_t *dst = collects ? c->out + at : half(s, s->me) + at;

    if (r != DT_OK)
        return r;
    if (first)
        post(s, c->call);
    stage_others(s, c);
    r = meet(s, first ? c->call : NULL);
    if (r != DT_OK)
        return r;
    fold(s, c, dst, only_root ? NULL : half(s, s->me) + at, at, bytes, c->in);
    publish(s, REDUCED);
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
        r = next_round(s);
        if (r == DT_OK && bytes)
            memcpy(half(s, root), buf, bytes);
    } else {
        s->round++;
        r = await(s, root, 4 * s->round + OUT);
        if (r == DT_OK && bytes)
            memcpy(buf, half(s, root), bytes);
    }
    if (r == DT_OK)
        publish(s, OUT);
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
