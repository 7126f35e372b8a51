#include "runtime/gpu/extents.h"

#include "runtime/gpu/operation.h"
#include "runtime/kernels/dtype.h"

struct dt_extents dt_extents_of(const struct dt_operation *o, int rank, int size)
{
    size_t one = o->count * dt_dtype_size(o->dtype);
    size_t given = dt_blocks_bytes(&o->given, (uint32_t)size, o->dtype);
    size_t taken = dt_blocks_bytes(&o->taken, (uint32_t)size, o->dtype);
    size_t own = dt_blocks_count(&o->taken, (uint32_t)rank) * dt_dtype_size(o->dtype);
    unsigned traits = dt_call_traits(o->kind->call);
    bool is_root = rank == o->root;
    struct dt_extents e = {
        .in = traits & DT_CALL_IN          ? one
              : traits & DT_CALL_IN_BLOCKS ? given
              : traits & DT_CALL_IN_OWN    ? own
                                           : 0,
        .out = traits & DT_CALL_OUT          ? one
               : traits & DT_CALL_OUT_BLOCKS ? taken
                                             : 0,
    };

    if (traits & DT_CALL_TELLS_FROM && !is_root)
        e.in = 0;
    if (traits & (is_root ? DT_CALL_ONE_BUFFER : DT_CALL_TELLS_TO))
        e.out = 0;
    return e;
}
