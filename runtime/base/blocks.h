/* A buffer's blocks, one for each rank, in their order and without gaps; and any of its bytes. */
#ifndef DT_BASE_BLOCKS_H
#define DT_BASE_BLOCKS_H

#include <stddef.h>

#include "runtime/dtrun.h"

struct dt_blocks {
    const size_t *counts; /* of elements, by rank; NULL: all have "each" */
    size_t each;
};

struct dt_span { /* bytes of a buffer */
    size_t at;
    size_t bytes;
};

static inline struct dt_blocks dt_blocks_each(size_t each)
{
    return (struct dt_blocks){ .each = each };
}

static inline struct dt_blocks dt_blocks_of(const size_t *counts)
{
    return (struct dt_blocks){ .counts = counts };
}

size_t dt_blocks_count(const struct dt_blocks *blocks, int rank);
/* Of the first n blocks, whose sum is known to fit. */
size_t dt_blocks_bytes(const struct dt_blocks *blocks, int n, dt_dtype_t dtype);

#endif
