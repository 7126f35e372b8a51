#include "runtime/shm/alltoall.h"

#include <stdlib.h>

#include "runtime/kernels/dtype.h"
#include "runtime/shm/pairwise.h"

/* ---- naming a pair whose counts differ ---- */

struct claim {
    uint64_t differs;
    uint64_t giver;
    uint64_t given;
    uint64_t expected;
};

/* The first rank that gives this one another count than it expects. given: by rank. */
static struct claim own_claim(const struct dt_pairwise *m, const uint64_t *given, size_t element)
{
    for (uint32_t i = 0; i < m->s->n; i++) {
        if (given[i] != m->take[i].bytes)
            return (struct claim){ true, i, given[i] / element, m->take[i].bytes / element };
    }
    return (struct claim){ 0 };
}

/* Each rank tells its peers what it gives them. Then all ranks learn of the first pair that
 * differs. */
static dt_result_t find_pair(const struct dt_pairwise *m, uint64_t *give, uint64_t *given,
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
        dt_coll_error(s->coll_error, DT_ERR_MISMATCH, s->ranks[giver == s->me ? i : giver]);
        s->coll_error->giver = s->ranks[giver];
        s->coll_error->taker = s->ranks[i];
        s->coll_error->given = claims[i].given;
        s->coll_error->expected = claims[i].expected;
        return DT_ERR_MISMATCH;
    }
    return dt_coll_error(s->coll_error, DT_ERR_INTERNAL, s->ranks[s->me]);
}

/* All ranks call this, or none does. */
static dt_result_t blame_pair(const struct dt_pairwise *m)
{
    uint32_t n = m->s->n;
    uint64_t *words = calloc(2 * (size_t)n, sizeof *words);
    struct claim *claims = calloc(n, sizeof *claims);
    dt_result_t r = words && claims
                        ? find_pair(m, words, words + n, claims)
                        : dt_coll_error(m->s->coll_error, DT_ERR_NOMEM, m->s->ranks[m->s->me]);

    if (r == DT_OK)
        r = blame(m->s, claims);
    free(words);
    free(claims);
    return r;
}

/* ---- the collectives ---- */

static const struct dt_near ALL = { NULL, NULL };

static dt_result_t move(struct dt_pairwise *m)
{
    dt_result_t r = dt_pairwise(m);

    return m->differs ? blame_pair(m) : r;
}

static size_t count_of(const struct dt_blocks *blocks, uint32_t i)
{
    return blocks->counts ? blocks->counts[i] : blocks->each;
}

/* near has no ranks if all ranks are on this host. */
static void lay_out(struct dt_range *spans, const struct dt_shm *s, const struct dt_blocks *blocks,
                    size_t element, struct dt_near near)
{
    size_t at = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t block = near.ranks ? near.ranks[i] : i;

        while (next < block)
            at += count_of(blocks, next++) * element;
        spans[i] = (struct dt_range){ at, count_of(blocks, block) * element };
        if (near.ranks && i == s->me)
            spans[i].bytes = 0;
    }
}

static void repeat(struct dt_range *spans, uint32_t n, size_t bytes)
{
    for (uint32_t i = 0; i < n; i++)
        spans[i] = (struct dt_range){ 0, bytes };
}

static size_t element_of(const struct dt_call *call)
{
    return dt_dtype_size((dt_dtype_t)call->dtype);
}

dt_result_t dt_shm_all_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks)
{
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = { .s = s,
                             .call = call,
                             .in = in,
                             .give = give,
                             .out = out,
                             .take = take,
                             .one_window = true,
                             .gives = true,
                             .takes = true };

    lay_out(take, s, blocks, element_of(call), ALL);
    repeat(give, s->n, take[s->me].bytes);
    return move(&m);
}

dt_result_t dt_shm_all_to_all_near(struct dt_shm *s, const struct dt_call *call, const void *in,
                                   const struct dt_blocks *given, void *out,
                                   const struct dt_blocks *taken, struct dt_near near)
{
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = { .s = s,
                             .call = call,
                             .in = in,
                             .give = give,
                             .out = out,
                             .take = take,
                             .gives = true,
                             .takes = true,
                             .word = near.word,
                             .overwrites = in == out };

    lay_out(give, s, given, element_of(call), near);
    lay_out(take, s, taken, element_of(call), near);
    return move(&m);
}

dt_result_t dt_shm_gather_near(struct dt_shm *s, const struct dt_call *call, const void *in,
                               size_t count, void *out, const struct dt_blocks *blocks,
                               uint32_t root, struct dt_near near)
{
    struct dt_range give[s->n], take[s->n];
    bool is_root = s->me == root;
    struct dt_pairwise m = { .s = s,
                             .call = call,
                             .in = in,
                             .give = give,
                             .out = out,
                             .take = take,
                             .one_window = true,
                             .gives = !is_root,
                             .takes = is_root,
                             .word = near.word };

    repeat(give, s->n, 0);
    repeat(take, s->n, 0);
    give[root].bytes = near.ranks && is_root ? 0 : count * element_of(call);
    if (is_root)
        lay_out(take, s, blocks, element_of(call), near);
    return move(&m);
}

dt_result_t dt_shm_scatter_near(struct dt_shm *s, const struct dt_call *call, const void *in,
                                const struct dt_blocks *blocks, void *out, size_t count,
                                uint32_t root, struct dt_near near)
{
    struct dt_range give[s->n], take[s->n];
    bool is_root = s->me == root;
    struct dt_pairwise m = { .s = s,
                             .call = call,
                             .in = in,
                             .give = give,
                             .out = out,
                             .take = take,
                             .gives = is_root,
                             .takes = !is_root,
                             .word = near.word };

    repeat(give, s->n, 0);
    repeat(take, s->n, 0);
    take[root].bytes = near.ranks && is_root ? 0 : count * element_of(call);
    if (is_root)
        lay_out(give, s, blocks, element_of(call), near);
    return move(&m);
}

dt_result_t dt_shm_all_to_all(struct dt_shm *s, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken)
{
    return dt_shm_all_to_all_near(s, call, in, given, out, taken, ALL);
}

dt_result_t dt_shm_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                          size_t count, void *out, const struct dt_blocks *blocks, uint32_t root)
{
    return dt_shm_gather_near(s, call, in, count, out, blocks, root, ALL);
}

dt_result_t dt_shm_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                           const struct dt_blocks *blocks, void *out, size_t count, uint32_t root)
{
    return dt_shm_scatter_near(s, call, in, blocks, out, count, root, ALL);
}

dt_result_t dt_shm_reduce_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                                  void *out, const struct dt_blocks *blocks, int divisor)
{
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = { .s = s,
                             .call = call,
                             .in = in,
                             .give = give,
                             .out = out,
                             .take = take,
                             .gives = true,
                             .takes = true,
                             .divisor = divisor };

    lay_out(give, s, blocks, element_of(call), ALL);
    repeat(take, s->n, give[s->me].bytes);
    return move(&m);
}
