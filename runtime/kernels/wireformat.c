#include "runtime/kernels/wireformat.h"

#include "runtime/kernels/reduce.h"

static const struct {
    size_t head; /* bytes before the numbers of a block */
    unsigned bits;
    unsigned whole; /* numbers that are packed together */
} layouts[DT_FORMATS] = {
    [DT_FORMAT_F16] = { 0, 16, 1 },
    [DT_FORMAT_BF16] = { 0, 16, 1 },
    [DT_FORMAT_INT8] = { sizeof(float), 8, 1 },
    [DT_FORMAT_COUNT2] = { 0, 2, DT_FORMAT_BLOCK },
    [DT_FORMAT_COUNT4] = { 0, 4, DT_FORMAT_BLOCK },
    [DT_FORMAT_COUNT8] = { 0, 8, DT_FORMAT_BLOCK },
};

size_t dt_wireformat_bytes(enum dt_wireformat f, size_t count)
{
    size_t blocks = count / DT_FORMAT_BLOCK + (count % DT_FORMAT_BLOCK != 0);
    size_t whole = layouts[f].whole;

    return blocks * layouts[f].head + (count + whole - 1) / whole * whole * layouts[f].bits / 8;
}

void dt_wireformat_pack(enum dt_wireformat f, void *dst, const void *src, size_t count, float step)
{
    dt_reduce_kernels()->pack[f](dst, src, count, step);
}

void dt_wireformat_unpack(enum dt_wireformat f, void *dst, const void *src, size_t count,
                          float step)
{
    dt_reduce_kernels()->unpack[f](dst, src, count, step);
}

void dt_wireformat_keep_error(void *residual, const void *wanted, const void *arrived, size_t count,
                              float weight)
{
    dt_reduce_kernels()->keep_error(residual, wanted, arrived, count, weight);
}
