#include "runtime/shm/chunk.h"

#include "runtime/base/copy.h"
#include "runtime/base/min.h"
#include "runtime/kernels/reduce.h"
#include "runtime/shm/stream.h"

/* blocks begin at multiples, so that no two ranks write one pair of cache lines */
enum { BLOCK_ALIGN = 128 };

struct dt_chunk dt_chunk_cut(const struct dt_shm *s, const struct dt_chunk *whole, size_t at,
                             size_t most)
{
    struct dt_chunk c = *whole;

    c.at = at;
    c.in += at;
    c.out = c.out ? c.out + at : NULL;
    c.bytes = dt_min(whole->bytes - at, most);
    c.block = ((c.bytes + s->n - 1) / s->n + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    return c;
}

size_t dt_chunk_block_at(const struct dt_chunk *c, uint32_t local_rank)
{
    return dt_min(c->block * local_rank, c->bytes);
}

size_t dt_chunk_block_bytes(const struct dt_chunk *c, uint32_t local_rank)
{
    return dt_chunk_block_at(c, local_rank + 1) - dt_chunk_block_at(c, local_rank);
}

bool dt_chunk_is_placed(const struct dt_chunk *c, uint32_t local_rank)
{
    return c->done && c->at < c->done[local_rank];
}

bool dt_chunk_is_for(const struct dt_chunk *c, uint32_t local_rank)
{
    return c->root == DT_CHUNK_EVERYBODY || c->root == local_rank;
}

void dt_chunk_fold(const struct dt_shm *s, const struct dt_chunk *c, void *dst,
                   const void *const *src, size_t bytes)
{
    dt_dtype_t dtype = (dt_dtype_t)c->call->dtype;
    struct dt_fold f = { .dst = dst,
                         .src = src,
                         .n = s->n,
                         .count = bytes / dt_dtype_size(dtype),
                         .divisor = c->divisor };

    dt_fold(&f, dtype, (dt_op_t)c->call->op);
}

void dt_chunk_keep(const struct dt_chunk *c, void *out, const void *result, size_t bytes)
{
    if (c->huge)
        dt_stream_past_caches(out, result, bytes);
    else
        dt_copy(out, result, bytes);
}
