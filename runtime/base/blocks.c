#include "runtime/base/blocks.h"

#include "runtime/kernels/dtype.h"

size_t dt_blocks_bytes(const struct dt_blocks *blocks, uint32_t n, dt_dtype_t dtype)
{
    size_t total = blocks->counts ? 0 : blocks->each * n;

    for (uint32_t i = 0; blocks->counts && i < n; i++)
        total += blocks->counts[i];
    return total * dt_dtype_size(dtype);
}

const void *dt_block_of(const void *buf, const struct dt_blocks *blocks, uint32_t rank,
                        dt_dtype_t dtype)
{
    return buf ? (const uint8_t *)buf + dt_blocks_bytes(blocks, rank, dtype) : NULL;
}
