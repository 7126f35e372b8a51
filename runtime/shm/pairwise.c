#include "runtime/shm/pairwise.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/copy.h"
#include "runtime/base/count_check.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/call_match.h"
#include "runtime/shm/rounds.h"

/* Least bytes that others copy directly from this rank's buffer. Oversubscribed ranks would lose
 * more by waiting until all have copied them. */
enum { DIRECT_LEAST = 8 * 1024, DIRECT_LEAST_CROWDED = 32 * 1024 };

/* What ranks tell each other in the first round. */
struct count_ledger {
    uint64_t balance; /* checks of what it gives and expects (count_check.h); the sum over all ranks
                         is 0 */
    uint64_t longest;
    uint64_t closed; /* it gives data that others cannot access directly */
    uint64_t open;   /* it gives data that they can, and has staged the address */
    uint64_t word;
};

static_assert(sizeof(struct count_ledger) <= DT_HOSTSHM_INLINE, "travels with the signature");

/* The offset at which the last data that this rank gives to others ends; 0: it gives nothing. */
static size_t given_bytes(const struct dt_pairwise *m)
{
    size_t end = 0;

    for (uint32_t i = 0; i < m->s->n; i++) {
        const struct dt_range *g = &m->give[i];

        if (i != m->s->me && g->bytes && g->at + g->bytes > end)
            end = g->at + g->bytes;
    }
    return end;
}

static struct count_ledger own_ledger(const struct dt_pairwise *m)
{
    uint32_t me = m->s->me;
    struct count_ledger own = { 0 };

    for (uint32_t i = 0; i < m->s->n; i++) {
        size_t given = m->give[i].bytes, taken = m->take[i].bytes;

        own.balance +=
            dt_count_check_one(me, i, given, true) + dt_count_check_one(me, i, taken, false);
        own.longest = own.longest < given ? given : own.longest;
        own.longest = own.longest < taken ? taken : own.longest;
    }
    own.open = m->place.segment != 0;
    own.closed = m->gives && !own.open && given_bytes(m);
    own.word = m->word ? *m->word : 0;
    return own;
}

/* ---- rounds ---- */

/* Where in a rank's staging area the data for taker are. */
static uint8_t *staging_slot(const struct dt_pairwise *m, uint32_t giver, uint32_t taker)
{
    return dt_round_staging(m->s, giver) + (m->one_window ? 0 : taker * m->window);
}

/* The bytes of the range that this round moves. The round began at offset "at". */
static size_t chunk_bytes(const struct dt_pairwise *m, const struct dt_range *range, size_t at)
{
    size_t rest = range->bytes > at ? range->bytes - at : 0;

    return rest < m->window ? rest : m->window;
}

static void stage_chunks(const struct dt_pairwise *m, size_t at)
{
    uint32_t me = m->s->me;

    for (uint32_t i = 1; i < m->s->n; i++) {
        uint32_t peer = (me + i) % m->s->n;
        size_t bytes = chunk_bytes(m, &m->give[peer], at);

        if (bytes == 0)
            continue;
        dt_copy(staging_slot(m, me, peer), m->in + m->give[peer].at + at, bytes);
        if (m->one_window)
            return;
    }
}

/* Stages addresses instead of data. A window has room for them. */
static void stage_addresses(const struct dt_pairwise *m)
{
    for (uint32_t peer = 0; peer < m->s->n; peer++) {
        struct dt_place place = m->place;

        place.at += m->give[peer].at;
        memcpy(staging_slot(m, m->s->me, peer), &place, sizeof place);
    }
}

static dt_result_t copy_chunks(const struct dt_pairwise *m, size_t at)
{
    struct dt_shm *s = m->s;

    for (uint32_t i = 1; i < s->n; i++) {
        uint32_t peer = (s->me + i) % s->n;
        size_t bytes = chunk_bytes(m, &m->take[peer], at);
        dt_result_t r = bytes ? dt_round_await(s, peer, DT_IN) : DT_OK;

        if (r != DT_OK)
            return r;
        if (bytes)
            dt_copy(m->out + m->take[peer].at + at, staging_slot(m, peer, s->me), bytes);
    }
    return DT_OK;
}

static dt_result_t reduce_chunks(const struct dt_pairwise *m, size_t at)
{
    struct dt_shm *s = m->s;
    dt_dtype_t dtype = (dt_dtype_t)m->call->dtype;
    size_t bytes = chunk_bytes(m, &m->take[s->me], at);
    const void *src[s->n];
    struct dt_fold f = {
        .src = src, .n = s->n, .count = bytes / dt_dtype_size(dtype), .divisor = m->divisor
    };
    dt_result_t r = bytes ? dt_round_await_all(s, DT_IN) : DT_OK;

    if (r != DT_OK || bytes == 0)
        return r;
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = i == s->me ? m->in + m->give[i].at + at : staging_slot(m, i, s->me);
    f.dst = m->out + at;
    dt_fold(&f, dtype, (dt_op_t)m->call->op);
    return DT_OK;
}

static dt_result_t take_chunks(const struct dt_pairwise *m, size_t at)
{
    return m->divisor ? reduce_chunks(m, at) : copy_chunks(m, at);
}

/* A rank that publishes in a round has left the previous one, so one word announces both. */
static dt_result_t next_round(const struct dt_pairwise *m, size_t at)
{
    dt_result_t r = DT_OK;

    if (m->gives)
        r = dt_round_begin(m->s, dt_round_most(m->s));
    else
        dt_round_join(m->s, dt_round_most(m->s));
    if (r != DT_OK)
        return r;
    stage_chunks(m, at);
    dt_round_publish(m->s, m->takes ? DT_IN : DT_LEFT);
    return take_chunks(m, at);
}

/* ---- without staging ---- */

/* For a rank that has read the others' data. A rank whose call fails keeps its buffer until
 * everything has been stopped, so data that were read before are valid. */
static dt_result_t leave_round(struct dt_shm *s)
{
    dt_result_t r = dt_shm_check(s);

    if (r != DT_OK)
        return r;
    dt_round_publish(s, DT_LEFT);
    return dt_round_await_all(s, DT_LEFT);
}

static dt_result_t copy_directly(const struct dt_pairwise *m, const uint8_t *const *from)
{
    for (uint32_t i = 1; i < m->s->n; i++) {
        uint32_t peer = (m->s->me + i) % m->s->n;

        if (m->take[peer].bytes)
            dt_shm_copy(m->s, m->out + m->take[peer].at, from[peer], m->take[peer].bytes);
    }
    return leave_round(m->s);
}

/* If the result would overwrite data that others still read, it goes to this rank's own block of
 * the buffer, which no other rank reads, until all have read. */
static dt_result_t reduce_directly(const struct dt_pairwise *m, const uint8_t *const *from)
{
    struct dt_shm *s = m->s;
    dt_dtype_t dtype = (dt_dtype_t)m->call->dtype;
    const struct dt_range *mine = &m->give[s->me];
    uint8_t *to = m->out == m->in ? m->out + mine->at : m->out;
    struct dt_fold f = { .dst = to,
                         .src = (const void *const *)from,
                         .n = s->n,
                         .count = mine->bytes / dt_dtype_size(dtype),
                         .divisor = m->divisor };
    dt_result_t r;

    if (mine->bytes)
        dt_fold(&f, dtype, (dt_op_t)m->call->op);
    r = leave_round(s);
    if (r == DT_OK && mine->bytes && to != m->out)
        memmove(m->out, to, mine->bytes);
    return r;
}

/* All ranks have staged addresses. Their buffers are their own again when all ranks have left. */
static dt_result_t exchange_directly(const struct dt_pairwise *m)
{
    struct dt_shm *s = m->s;
    const uint8_t *from[s->n];
    dt_result_t r = DT_OK;

    s->algorithm = "shm-mapped";
    dt_segment_hold();
    for (uint32_t i = 0; i < s->n; i++) {
        struct dt_place place;

        from[i] = NULL;
        if (m->take[i].bytes == 0)
            continue;
        memcpy(&place, staging_slot(m, i, s->me), sizeof place);
        from[i] = i == s->me ? m->in + m->give[i].at : dt_segment_find(place);
        if (!from[i])
            r = dt_coll_error(s->coll_error, DT_ERR_INTERNAL, s->ranks[i]);
    }
    if (r == DT_OK)
        r = m->divisor ? reduce_directly(m, from) : copy_directly(m, from);
    dt_segment_release();
    return r;
}

/* ---- the first round ---- */

/* Adds up all ranks' ledgers. */
static struct count_ledger read_ledgers(struct dt_pairwise *m, const struct count_ledger *own)
{
    struct count_ledger all = { 0 };

    for (uint32_t i = 0; i < m->s->n; i++) {
        struct count_ledger l;

        memcpy(&l, dt_call_match_told(m->s, i, own), sizeof l);
        all.balance += l.balance;
        all.open += l.open;
        all.closed += l.closed;
        all.word += l.word;
        m->longest = l.longest > m->longest ? l.longest : m->longest;
    }
    return all;
}

/* Stages, meets the other ranks, and compares what all ranks give and expect. Data that others can
 * access are not staged here. If others cannot access the data of every rank, all data are staged
 * later, in a round of its own. */
static dt_result_t first_round(struct dt_pairwise *m, bool *open)
{
    struct dt_shm *s = m->s;
    struct count_ledger own = own_ledger(m), all;
    dt_result_t r = dt_round_begin(s, dt_round_most(s));

    if (r != DT_OK)
        return r;
    if (own.open)
        stage_addresses(m);
    else
        stage_chunks(m, 0);
    dt_call_match_post(s, m->call, &own, sizeof own);
    r = dt_call_match(s, true);
    if (r != DT_OK)
        return r;
    all = read_ledgers(m, &own);
    if (m->word)
        *m->word = all.word;
    m->differs = all.balance != 0;
    if (m->differs)
        return dt_coll_error(s->coll_error, DT_ERR_MISMATCH, s->ranks[s->me]);
    *open = all.open && !all.closed;
    if (*open)
        return exchange_directly(m);
    return all.open ? next_round(m, 0) : take_chunks(m, 0);
}

/* A rank's data for itself are copied without staging. */
static void copy_own_block(const struct dt_pairwise *m)
{
    uint32_t me = m->s->me;
    uint8_t *to = m->out + m->take[me].at;
    const uint8_t *from = m->in + m->give[me].at;

    if (m->divisor == 0 && m->take[me].bytes && to != from)
        dt_copy(to, from, m->take[me].bytes);
}

static size_t direct_least_bytes(const struct dt_shm *s)
{
    return s->crowded ? DIRECT_LEAST_CROWDED : DIRECT_LEAST;
}

dt_result_t dt_pairwise(struct dt_pairwise *m)
{
    size_t windows = m->one_window ? 1 : m->s->n, bytes = given_bytes(m);
    bool open = false;
    dt_result_t r;

    if (m->gives && !m->overwrites && bytes >= direct_least_bytes(m->s))
        m->place = dt_segment_place(m->s->comm, m->in, bytes);
    m->window = dt_round_most(m->s) / windows / DT_HOSTSHM_LINE * DT_HOSTSHM_LINE;
    r = first_round(m, &open);
    if (r == DT_OK)
        copy_own_block(m);
    for (size_t at = m->window; r == DT_OK && !open && at < m->longest; at += m->window)
        r = next_round(m, at);
    return r;
}
