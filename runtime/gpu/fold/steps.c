#include "runtime/gpu/fold/steps.h"

#include <stdint.h>

#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

bool dt_gpu_steps_serve(const struct dt_operation *o)
{
    switch (o->kind->call) {
    case DT_CALL_ALL_REDUCE:
        return o->op != DT_ADASUM && (!o->how.size || o->how.wire == DT_WIRE_EXACT);
    case DT_CALL_REDUCE:
    case DT_CALL_REDUCE_SCATTER:
    case DT_CALL_BROADCAST:
    case DT_CALL_ALL_GATHER:
        return true;
    default:
        return false;
    }
}

/* In these calls each rank has a block of its own. Each block is a call, one after the other. */
static bool has_blocks(const struct dt_operation *o)
{
    return o->kind->call == DT_CALL_REDUCE_SCATTER || o->kind->call == DT_CALL_ALL_GATHER;
}

static size_t count_of_block(const struct dt_operation *o)
{
    return o->kind->call == DT_CALL_ALL_GATHER ? o->taken.each : o->count;
}

size_t dt_gpu_steps_longest(const struct dt_operation *o)
{
    return count_of_block(o) * dt_dtype_size(o->dtype);
}

struct dt_gpu_steps dt_gpu_steps_of(const struct dt_operation *o, int size, size_t most_bytes)
{
    struct dt_gpu_steps s = { .each = most_bytes / dt_dtype_size(o->dtype) };

    s.n = (count_of_block(o) + s.each - 1) / s.each;
    if (has_blocks(o))
        s.n *= (size_t)size;
    return s;
}

static const void *at(const void *buf, size_t bytes)
{
    return buf ? (const uint8_t *)buf + bytes : NULL;
}

static struct dt_gpu_step step_of(const struct dt_operation *o, int block, size_t first,
                                  size_t count)
{
    size_t size = dt_dtype_size(o->dtype);
    size_t here = first * size, there = ((size_t)block * count_of_block(o) + first) * size;
    void *out = (void *)(uintptr_t)at(o->out, here);

    switch (o->kind->call) {
    case DT_CALL_BROADCAST:
        return (struct dt_gpu_step){ count, false, o->root, DT_GPU_ALL_RANKS, out, out };
    case DT_CALL_ALL_GATHER:
        return (struct dt_gpu_step){ count,           false,
                                     block,           DT_GPU_ALL_RANKS,
                                     at(o->in, here), (void *)(uintptr_t)at(o->out, there) };
    case DT_CALL_REDUCE_SCATTER:
        return (struct dt_gpu_step){ count, true, 0, block, at(o->in, there), out };
    case DT_CALL_REDUCE:
        return (struct dt_gpu_step){ count, true, 0, o->root, at(o->in, here), out };
    default:
        return (struct dt_gpu_step){ count, true, 0, DT_GPU_ALL_RANKS, at(o->in, here), out };
    }
}

struct dt_gpu_step dt_gpu_steps_at(const struct dt_gpu_steps *s, const struct dt_operation *o,
                                   size_t i)
{
    size_t all = count_of_block(o), per_block = (all + s->each - 1) / s->each;
    size_t first = i % per_block * s->each;

    return step_of(o, (int)(i / per_block), first, all - first < s->each ? all - first : s->each);
}
