#include "runtime/shm/alltoall.h"

#include <stdlib.h>

#include "runtime/kernels/dtype.h"
#include "runtime/shm/pairwise.h"

/* ---- naming a pair whose counts differ ---- */

struct mismatch {
    uint64_t differs;
    uint64_t giver;
    uint64_t given;
    uint64_t expected;
};

/* The first rank that gives this one another count than it expects. given: by rank. */
static struct mismatch find_own_mismatch(const struct dt_pairwise *m, const uint64_t *given,
                                         size_t element)
{
    for (uint32_t i = 0; i < m->s->n; i++) {
        if (given[i] != m->take[i].bytes)
            return (struct mismatch){ true, i, given[i] / element, m->take[i].bytes / element };
    }
    return (struct mismatch){ 0 };
}

/* Each rank tells its peers what it gives them. Then all ranks learn of the first pair that
 * differs. */
static dt_result_t find_mismatch(const struct dt_pairwise *m, uint64_t *give, uint64_t *given,
                                 struct mismatch *mismatches)
{
    static const struct dt_blocks word = { .each = sizeof *give };
    static const struct dt_blocks whole = { .each = sizeof *mismatches };
    struct dt_call bytes = *m->call;
    struct dt_shm *s = m->s;
    struct mismatch own;
    dt_result_t r;

    bytes.dtype = DT_U8;
    for (uint32_t i = 0; i < s->n; i++)
        give[i] = m->give[i].bytes;
    r = dt_shm_all_to_all(s, &bytes, give, &word, given, &word, NULL);
    if (r != DT_OK)
        return r;
    own = find_own_mismatch(m, given, dt_dtype_size((dt_dtype_t)m->call->dtype));
    return dt_shm_all_gather(s, &bytes, &own, mismatches, &whole);
}

static dt_result_t report_mismatch(struct dt_shm *s, const struct mismatch *mismatches)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t giver = (uint32_t)mismatches[i].giver;

        if (!mismatches[i].differs)
            continue;
        dt_coll_error(s->coll_error, DT_ERR_MISMATCH, s->ranks[giver == s->me ? i : giver]);
        s->coll_error->giver = s->ranks[giver];
        s->coll_error->taker = s->ranks[i];
        s->coll_error->given = mismatches[i].given;
        s->coll_error->expected = mismatches[i].expected;
        return DT_ERR_MISMATCH;
    }
    return dt_coll_error(s->coll_error, DT_ERR_INTERNAL, s->ranks[s->me]);
}

/* All ranks call this, or none does. */
static dt_result_t find_and_report_mismatch(const struct dt_pairwise *m)
{
    uint32_t n = m->s->n;
    uint64_t *words = calloc(2 * (size_t)n, sizeof *words);
    struct mismatch *mismatches = calloc(n, sizeof *mismatches);
    dt_result_t r = words && mismatches
                        ? find_mismatch(m, words, words + n, mismatches)
                        : dt_coll_error(m->s->coll_error, DT_ERR_NOMEM, m->s->ranks[m->s->me]);

    if (r == DT_OK)
        r = report_mismatch(m->s, mismatches);
    free(words);
    free(mismatches);
    return r;
}

/* ---- the collectives ---- */

static dt_result_t exchange_blocks(struct dt_pairwise *m)
{
    dt_result_t r = dt_pairwise(m);

    return m->differs ? find_and_report_mismatch(m) : r;
}

static void set_block_ranges(struct dt_range *ranges, const struct dt_shm *s,
                             const struct dt_blocks *blocks, size_t element,
                             const struct dt_shm_local *local)
{
    size_t at = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t block = local ? local->ranks[i] : i;

        while (next < block)
            at += dt_blocks_count(blocks, next++) * element;
        ranges[i] = (struct dt_range){ at, dt_blocks_count(blocks, block) * element };
        if (local && i == s->me)
            ranges[i].bytes = 0;
    }
}

static void set_equal_ranges(struct dt_range *ranges, uint32_t n, size_t bytes)
{
    for (uint32_t i = 0; i < n; i++)
        ranges[i] = (struct dt_range){ 0, bytes };
}

/* What the calls have in common. The caller has yet to set the ranges. */
static struct dt_pairwise pairwise(struct dt_shm *s, const struct dt_call *call, const void *in,
                                   struct dt_range *give, void *out, struct dt_range *take)
{
    return (struct dt_pairwise){ .s = s,
                                 .call = call,
                                 .in = in,
                                 .give = give,
                                 .out = out,
                                 .take = take,
                                 .gives = true,
                                 .takes = true };
}

static size_t element_bytes(const struct dt_call *call)
{
    return dt_dtype_size((dt_dtype_t)call->dtype);
}

dt_result_t dt_shm_all_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks)
{
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = pairwise(s, call, in, give, out, take);

    m.one_window = true;
    set_block_ranges(take, s, blocks, element_bytes(call), NULL);
    set_equal_ranges(give, s->n, take[s->me].bytes);
    return exchange_blocks(&m);
}

dt_result_t dt_shm_all_to_all(struct dt_shm *s, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken, const struct dt_shm_local *local)
{
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = pairwise(s, call, in, give, out, take);

    m.word = local ? local->word : NULL;
    m.overwrites = in == out;
    set_block_ranges(give, s, given, element_bytes(call), local);
    set_block_ranges(take, s, taken, element_bytes(call), local);
    return exchange_blocks(&m);
}

dt_result_t dt_shm_rooted(struct dt_shm *s, const struct dt_call *call, const struct dt_rooted *g,
                          const struct dt_shm_local *local)
{
    bool is_root = s->me == g->root;
    struct dt_range whole[s->n], own[s->n];
    struct dt_pairwise m = g->gathers ? pairwise(s, call, g->own, own, g->whole, whole)
                                      : pairwise(s, call, g->whole, whole, g->own, own);

    m.one_window = g->gathers;
    m.gives = is_root != g->gathers;
    m.takes = is_root == g->gathers;
    m.word = local ? local->word : NULL;
    set_equal_ranges(own, s->n, 0);
    if (!local || !is_root)
        own[g->root].bytes = g->count * element_bytes(call);
    if (is_root)
        set_block_ranges(whole, s, g->blocks, element_bytes(call), local);
    else
        set_equal_ranges(whole, s->n, 0);
    return exchange_blocks(&m);
}

dt_result_t dt_shm_reduce_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                                  void *out, const struct dt_blocks *blocks, int divisor)
{
    struct dt_range give[s->n], take[s->n];
    struct dt_pairwise m = pairwise(s, call, in, give, out, take);

    m.divisor = divisor;
    set_block_ranges(give, s, blocks, element_bytes(call), NULL);
    set_equal_ranges(take, s->n, give[s->me].bytes);
    return exchange_blocks(&m);
}
