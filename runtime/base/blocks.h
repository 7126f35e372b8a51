/* The blocks of a buffer: one for each rank, in the order of ranks, without gaps. */
#ifndef DT_BASE_BLOCKS_H
#define DT_BASE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_blocks {
    const size_t *counts; /* in elements, by rank; NULL: each has "each" */
    size_t each;
};

struct dt_range { /* a range of bytes of a buffer */
    size_t at;
    size_t bytes;
};

/* A gather or a scatter. */
struct dt_rooted {
    bool gathers; /* blocks move to root; else from root */
    uint32_t root;
    void *whole; /* root's buffer, with a block for each rank; other ranks need none */
    const struct dt_blocks *blocks; /* of whole */
    void *own;                      /* this rank's block; at root it may be its place in whole */
    size_t count;
};

static inline struct dt_blocks dt_blocks_each(size_t each)
{
    return (struct dt_blocks){ .each = each };
}

static inline struct dt_blocks dt_blocks_of(const size_t *counts)
{
    return (struct dt_blocks){ .counts = counts };
}

static inline size_t dt_blocks_count(const struct dt_blocks *blocks, uint32_t rank)
{
    return blocks->counts ? blocks->counts[rank] : blocks->each;
}

/* The size of the first n blocks. The caller has checked that the sum fits into a size_t. */
size_t dt_blocks_bytes(const struct dt_blocks *blocks, uint32_t n, dt_dtype_t dtype);
/* The rank's block of buf; NULL if buf is NULL. */
const void *dt_block_of(const void *buf, const struct dt_blocks *blocks, uint32_t rank,
                        dt_dtype_t dtype);

static inline bool dt_buffers_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return a_bytes && b_bytes && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

#endif
