#include "runtime/base/blocks.h"

#include "runtime/kernels/dtype.h"

size_t dt_blocks_count(const struct dt_blocks *blocks, int rank)
{
    return blocks->counts ? blocks->counts[rank] : blocks->each;
}

size_t dt_blocks_bytes(const struct dt_blocks *blocks, int n, dt_dtype_t dtype)
{
    size_t total = 0;

    for (int i = 0; i < n; i++)
        total += dt_blocks_count(blocks, i);
    return total * dt_dtype_size(dtype);
}

const void *dt_block_of(const void *buf, const struct dt_blocks *blocks, int rank, dt_dtype_t dtype)
{
    return buf ? (const uint8_t *)buf + dt_blocks_bytes(blocks, rank, dtype) : NULL;
}
