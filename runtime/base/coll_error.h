/* What went wrong in a collective. error_report.h turns it into text. */
#ifndef DT_BASE_COLL_ERROR_H
#define DT_BASE_COLL_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"

struct dt_coll_error {
    dt_result_t code;
    uint32_t rank;         /* the rank of the job that caused it, or the neighbour that was lost */
    struct dt_call theirs; /* DT_ERR_MISMATCH: that rank's call; kind 0: unknown here */
    const char *why; /* DT_ERR_MISMATCH between two other ranks: their calls as text; or NULL */
    int error;       /* DT_ERR_IO, or DT_ERR_PEER after a connection broke: errno, or 0 */

    /* DT_ERR_MISMATCH of calls that are alike except for the counts of one pair of ranks: giver
     * sends "given" elements and taker expects "expected". Equal numbers: that is not the
     * reason. */
    uint32_t giver;
    uint32_t taker;
    uint64_t given;
    uint64_t expected;
};

enum { DT_CALL_TEXT = 160 };

/* Writes "all-reduce of 5 f32 (sum), call 7". Returns text. */
const char *dt_call_describe(const struct dt_call *call, char text[DT_CALL_TEXT]);
/* A hash of counts: equal for equal counts, and for practical purposes only for those. */
uint64_t dt_counts_hash(const size_t *counts, size_t n);

static inline dt_result_t dt_coll_error(struct dt_coll_error *t, dt_result_t code, uint32_t rank)
{
    *t = (struct dt_coll_error){ .code = code, .rank = rank };
    return code;
}

/* Equal for equal calls. Different calls have the same signature with a probability of 2^-64. */
static inline uint64_t dt_call_signature(const struct dt_call *c)
{
    uint64_t kinds = (uint64_t)(uint32_t)c->root << 32 | (uint32_t)c->kind << 24 |
                     (uint32_t)c->dtype << 16 | (uint32_t)c->op << 8 | c->device;
    uint64_t x = (kinds ^ c->options ^ c->number * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;

    x = (x ^ x >> 29 ^ c->count) * 0x94d049bb133111ebU;
    return x ^ x >> 32;
}

/* Whether the calls match. */
static inline bool dt_call_equal(const struct dt_call *a, const struct dt_call *b)
{
    return a->number == b->number && a->count == b->count && a->kind == b->kind &&
           a->dtype == b->dtype && a->op == b->op && a->device == b->device && a->root == b->root &&
           a->options == b->options;
}

/* Whether each pair of ranks in the call states a count of its own. For Adasum, ranks give each
 * other pieces of their vectors. */
static inline bool dt_call_has_pair_counts(const struct dt_call *c)
{
    return (dt_call_traits(c->kind) & DT_CALL_PAIRS) ||
           (c->kind == DT_CALL_ALL_REDUCE && c->op == DT_ADASUM);
}

#endif
