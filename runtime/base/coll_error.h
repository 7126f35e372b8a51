/* What went wrong in a collective, for the text that its caller writes. */
#ifndef DT_BASE_COLL_ERROR_H
#define DT_BASE_COLL_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/wire/hostshm.h"

struct dt_coll_error {
    dt_result_t code;
    uint32_t rank;         /* to blame, or the neighbour that was lost */
    struct dt_call theirs; /* DT_ERR_MISMATCH: what that rank called; kind 0: not known here */
    const char *why;       /* DT_ERR_MISMATCH of two others: what they called; or NULL */
    int error;             /* DT_ERR_IO: errno */

    /* DT_ERR_MISMATCH: calls that are alike, but for a pair of ranks of which one gives the other
     * "given" elements that expects "expected". Equal: it is not that. */
    uint32_t giver;
    uint32_t taker;
    uint64_t given;
    uint64_t expected;
};

enum { DT_CALL_TEXT = 160 };

/* "all-reduce of 5 f32 (sum), call 7". Returns text. */
const char *dt_call_describe(const struct dt_call *call, char text[DT_CALL_TEXT]);
/* A number that is the same for the same counts, for all practical purposes. */
uint64_t dt_counts_hash(const size_t *counts, size_t n);

static inline dt_result_t dt_coll_error(struct dt_coll_error *t, dt_result_t code, uint32_t rank)
{
    *t = (struct dt_coll_error){ .code = code, .rank = rank };
    return code;
}

/* Equal for calls that fit together, and otherwise for one pair in 2^64. */
static inline uint64_t dt_call_signature(const struct dt_call *c)
{
    uint64_t kinds = (uint64_t)(uint32_t)c->root << 32 | (uint32_t)c->kind << 24 |
                     (uint32_t)c->dtype << 16 | (uint32_t)c->op << 8 | c->device;
    uint64_t x = (kinds ^ c->options ^ c->number * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;

    x = (x ^ x >> 29 ^ c->count) * 0x94d049bb133111ebU;
    return x ^ x >> 32;
}

/* Equal calls fit together. */
static inline bool dt_call_equal(const struct dt_call *a, const struct dt_call *b)
{
    return a->number == b->number && a->count == b->count && a->kind == b->kind &&
           a->dtype == b->dtype && a->op == b->op && a->device == b->device && a->root == b->root &&
           a->options == b->options;
}

/* Whether all ranks make it, but each pair states a count of its own. */
static inline bool dt_call_moves_parcels(const struct dt_call *c)
{
    return dt_call_traits(c->kind) & DT_CALL_PAIRS;
}

#endif
