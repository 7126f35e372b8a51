#include "runtime/host/shmmove.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/meet.h"
#include "runtime/host/reduce.h"
#include "runtime/host/rounds.h"

struct span { /* bytes of a buffer */
    size_t at;
    size_t bytes;
};

/* Every collective here is this: some spans of "in" go to peers, some of "out" come from them. A
 * round moves as much of each as fits into a window of the giver's staging: that which all its
 * peers look at, or one for each of them. */
struct move {
    struct dt_shm *s;
    const struct dt_call *call;
    const uint8_t *in;
    const struct span *give; /* by peer */
    uint8_t *out;
    const struct span *take; /* likewise */
    bool one_window;
    bool gives; /* anything at all, and so on */
    bool takes;
    size_t window;
    size_t longest; /* of everybody's spans */
    int divisor;    /* 0: what is taken is copied; else it is folded */
};

/* What ranks tell each other in the first round. */
struct ledger {
    uint64_t balance; /* what this rank gives, less what it expects: all together it is 0 */
    uint64_t longest;
};

static_assert(sizeof(struct ledger) <= DT_HOSTSHM_INLINE, "travels with the signature");

/* An odd number, another for every pair: what is given and not expected then leaves a trace in the
 * sum over all pairs, but for one case in 2^64. */
static uint64_t weight(uint32_t giver, uint32_t taker)
{
    uint64_t x = ((uint64_t)giver << 32 | taker) * 0x9e3779b97f4a7c15U;

    return (x ^ x >> 32) * 0xbf58476d1ce4e5b9U | 1;
}

static struct ledger own_ledger(const struct move *m)
{
    uint32_t me = m->s->me;
    struct ledger own = { 0 };

    for (uint32_t i = 0; i < m->s->n; i++) {
        size_t given = m->give[i].bytes, taken = m->take[i].bytes;

        own.balance += given * weight(me, i) - taken * weight(i, me);
        own.longest = own.longest < given ? given : own.longest;
        own.longest = own.longest < taken ? taken : own.longest;
    }
    return own;
}

/* ---- rounds ---- */

/* Where in a rank's staging it stands what goes to taker. */
static uint8_t *staged(const struct move *m, uint32_t giver, uint32_t taker)
{
    return dt_round_staging(m->s, giver) + (m->one_window ? 0 : taker * m->window);
}

/* The bytes of the span that this round moves, which began "at". */
static size_t piece(const struct move *m, const struct span *span, size_t at)
{
    size_t rest = span->bytes > at ? span->bytes - at : 0;

    return rest < m->window ? rest : m->window;
}

static void stage(const struct move *m, size_t at)
{
    uint32_t me = m->s->me;

    for (uint32_t i = 1; i < m->s->n; i++) {
        uint32_t peer = (me + i) % m->s->n;
        size_t bytes = piece(m, &m->give[peer], at);

        if (bytes == 0)
            continue;
        memcpy(staged(m, me, peer), m->in + m->give[peer].at + at, bytes);
        if (m->one_window)
            return;
    }
}

static dt_result_t copy(const struct move *m, size_t at)
{
    struct dt_shm *s = m->s;

    for (uint32_t i = 1; i < s->n; i++) {
        uint32_t peer = (s->me + i) % s->n;
        size_t bytes = piece(m, &m->take[peer], at);
        dt_result_t r = bytes ? dt_round_await(s, peer, DT_IN) : DT_OK;

        if (r != DT_OK)
            return r;
        if (bytes)
            memcpy(m->out + m->take[peer].at + at, staged(m, peer, s->me), bytes);
    }
    return DT_OK;
}

static dt_result_t fold(const struct move *m, size_t at)
{
    struct dt_shm *s = m->s;
    dt_dtype_t dtype = (dt_dtype_t)m->call->dtype;
    size_t bytes = piece(m, &m->take[s->me], at);
    const void *src[s->n];
    struct dt_fold f = {
        .src = src, .n = s->n, .count = bytes / dt_dtype_size(dtype), .divisor = m->divisor
    };
    dt_result_t r = bytes ? dt_round_await_all(s, DT_IN) : DT_OK;

    if (r != DT_OK || bytes == 0)
        return r;
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = i == s->me ? m->in + m->give[i].at + at : staged(m, i, s->me);
    f.dst = m->out + at;
    dt_fold(&f, dtype, (dt_op_t)m->call->op);
    return DT_OK;
}

static dt_result_t take(const struct move *m, size_t at)
{
    return m->divisor ? fold(m, at) : copy(m, at);
}

/* Whoever publishes in a round has left the one before it, so that one word says both. */
static dt_result_t next_round(const struct move *m, size_t at)
{
    dt_result_t r = DT_OK;

    if (m->gives)
        r = dt_round_begin(m->s, dt_round_most(m->s));
    else
        dt_round_join(m->s, dt_round_most(m->s));
    if (r != DT_OK)
        return r;
    stage(m, at);
    dt_round_publish(m->s, m->takes ? DT_IN : DT_LEFT);
    return take(m, at);
}

/* ---- the first round ---- */

static dt_result_t blame_pair(const struct move *m);

/* Stages, comes to the call, and compares what everybody gives and expects. */
static dt_result_t first_round(struct move *m)
{
    struct dt_shm *s = m->s;
    struct ledger own = own_ledger(m);
    uint64_t balance = 0;
    dt_result_t r = dt_round_begin(s, dt_round_most(s));

    if (r != DT_OK)
        return r;
    stage(m, 0);
    dt_meet_post(s, m->call, &own, sizeof own);
    r = dt_meet(s, true);
    if (r != DT_OK)
        return r;
    for (uint32_t i = 0; i < s->n; i++) {
        struct ledger l;

        memcpy(&l, dt_round_post(s, i)->data, sizeof l);
        balance += l.balance;
        m->longest = l.longest > m->longest ? l.longest : m->longest;
    }
    return balance == 0 ? take(m, 0) : blame_pair(m);
}

/* What a rank has for itself needs no staging. */
static void keep_own(const struct move *m)
{
    uint32_t me = m->s->me;
    uint8_t *to = m->out + m->take[me].at;
    const uint8_t *from = m->in + m->give[me].at;

    if (m->divisor == 0 && m->take[me].bytes && to != from)
        memcpy(to, from, m->take[me].bytes);
}

static dt_result_t move(struct move *m)
{
    size_t windows = m->one_window ? 1 : m->s->n;
    dt_result_t r;

    m->window = dt_round_most(m->s) / windows / DT_HOSTSHM_LINE * DT_HOSTSHM_LINE;
    r = first_round(m);
    if (r == DT_OK)
        keep_own(m);
    for (size_t at = m->window; r == DT_OK && at < m->longest; at += m->window)
        r = next_round(m, at);
    return r;
}

/* ---- a pair that does not agree ---- */

struct claim {
    uint64_t differs;
    uint64_t giver;
    uint64_t given;
    uint64_t expected;
};

/* The first rank that gives this one something else than it expects. given: by rank. */
static struct claim own_claim(const struct move *m, const uint64_t *given, size_t element)
{
    for (uint32_t i = 0; i < m->s->n; i++) {
        if (given[i] != m->take[i].bytes)
            return (struct claim){ true, i, given[i] / element, m->take[i].bytes / element };
    }
    return (struct claim){ 0 };
}

/* Tells every taker what it is given, then everybody what the first of them has to say about it. */
static dt_result_t find_pair(const struct move *m, uint64_t *give, uint64_t *given,
                             struct claim *claims)
{
    static const struct dt_blocks word = { .each = sizeof *give };
    static const struct dt_blocks whole = { .each = sizeof *claims };
    struct dt_call bytes = *m->call;
    struct dt_shm *s = m->s;
    struct claim own;
    dt_result_t r;

    bytes.dtype = DT_U8;
    for (uint32_t i = 0; i < s->n; i++)
        give[i] = m->give[i].bytes;
    r = dt_shm_all_to_all(s, &bytes, give, &word, given, &word);
    if (r != DT_OK)
        return r;
    own = own_claim(m, given, dt_dtype_size((dt_dtype_t)m->call->dtype));
    return dt_shm_all_gather(s, &bytes, &own, claims, &whole);
}

static dt_result_t blame(struct dt_shm *s, const struct claim *claims)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t giver = (uint32_t)claims[i].giver;

        if (!claims[i].differs)
            continue;
        dt_trouble(s->trouble, DT_ERR_MISMATCH, s->ranks[giver == s->me ? i : giver]);
        s->trouble->giver = s->ranks[giver];
        s->trouble->taker = s->ranks[i];
        s->trouble->given = claims[i].given;
        s->trouble->expected = claims[i].expected;
        return DT_ERR_MISMATCH;
    }
    return dt_trouble(s->trouble, DT_ERR_INTERNAL, s->ranks[s->me]);
}

/* All ranks come here, or none. */
static dt_result_t blame_pair(const struct move *m)
{
    uint32_t n = m->s->n;
    uint64_t *words = calloc(2 * (size_t)n, sizeof *words);
    struct claim *claims = calloc(n, sizeof *claims);
    dt_result_t r = words && claims
                        ? find_pair(m, words, words + n, claims)
                        : dt_trouble(m->s->trouble, DT_ERR_NOMEM, m->s->ranks[m->s->me]);

    if (r == DT_OK)
        r = blame(m->s, claims);
    free(words);
    free(claims);
    return r;
}

/* ---- the collectives ---- */

static void lay_out(struct span *spans, uint32_t n, const struct dt_blocks *blocks, size_t element)
{
    size_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = (blocks->counts ? blocks->counts[i] : blocks->each) * element;

        spans[i] = (struct span){ at, bytes };
        at += bytes;
    }
}

static void repeat(struct span *spans, uint32_t n, size_t bytes)
{
    for (uint32_t i = 0; i < n; i++)
        spans[i] = (struct span){ 0, bytes };
}

static size_t element_of(const struct dt_call *call)
{
    return dt_dtype_size((dt_dtype_t)call->dtype);
}

dt_result_t dt_shm_all_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks)
{
    struct span give[s->n], take[s->n];
    struct move m = { .s = s,
                      .call = call,
                      .in = in,
                      .give = give,
                      .out = out,
                      .take = take,
                      .one_window = true,
                      .gives = true,
                      .takes = true };

    lay_out(take, s->n, blocks, element_of(call));
    repeat(give, s->n, take[s->me].bytes);
    return move(&m);
}

dt_result_t dt_shm_all_to_all(struct dt_shm *s, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken)
{
    struct span give[s->n], take[s->n];
    struct move m = { .s = s,
                      .call = call,
                      .in = in,
                      .give = give,
                      .out = out,
                      .take = take,
                      .gives = true,
                      .takes = true };

    lay_out(give, s->n, given, element_of(call));
    lay_out(take, s->n, taken, element_of(call));
    return move(&m);
}

dt_result_t dt_shm_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                          size_t count, void *out, const struct dt_blocks *blocks, uint32_t root)
{
    struct span give[s->n], take[s->n];
    bool is_root = s->me == root;
    struct move m = { .s = s,
                      .call = call,
                      .in = in,
                      .give = give,
                      .out = out,
                      .take = take,
                      .one_window = true,
                      .gives = !is_root,
                      .takes = is_root };

    repeat(give, s->n, 0);
    repeat(take, s->n, 0);
    give[root].bytes = count * element_of(call);
    if (is_root)
        lay_out(take, s->n, blocks, element_of(call));
    return move(&m);
}

dt_result_t dt_shm_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                           const struct dt_blocks *blocks, void *out, size_t count, uint32_t root)
{
    struct span give[s->n], take[s->n];
    bool is_root = s->me == root;
    struct move m = { .s = s,
                      .call = call,
                      .in = in,
                      .give = give,
                      .out = out,
                      .take = take,
                      .gives = is_root,
                      .takes = !is_root };

    repeat(give, s->n, 0);
    repeat(take, s->n, 0);
    take[root].bytes = count * element_of(call);
    if (is_root)
        lay_out(give, s->n, blocks, element_of(call));
    return move(&m);
}

dt_result_t dt_shm_reduce_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                                  void *out, const struct dt_blocks *blocks, int divisor)
{
    struct span give[s->n], take[s->n];
    struct move m = { .s = s,
                      .call = call,
                      .in = in,
                      .give = give,
                      .out = out,
                      .take = take,
                      .gives = true,
                      .takes = true,
                      .divisor = divisor };

    lay_out(give, s->n, blocks, element_of(call));
    repeat(take, s->n, give[s->me].bytes);
    return move(&m);
}
