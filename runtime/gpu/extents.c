#include "runtime/gpu/extents.h"

#include "runtime/api/checks.h"
#include "runtime/api/operation.h"
#include "runtime/kernels/dtype.h"

struct dt_extents dt_extents_of(const struct dt_operation *o, int rank, int size)
{
    size_t one = o->count * dt_dtype_size(o->dtype);
    size_t given = dt_blocks_bytes(&o->given, size, o->dtype);
    size_t taken = dt_blocks_bytes(&o->taken, size, o->dtype);
    bool is_root = rank == o->root;

    switch (o->kind->call) {
    case DT_CALL_ALL_REDUCE:
        return (struct dt_extents){ one, one };
    case DT_CALL_BROADCAST:
        return (struct dt_extents){ is_root ? one : 0, is_root ? 0 : one };
    case DT_CALL_REDUCE:
        return (struct dt_extents){ one, is_root ? one : 0 };
    case DT_CALL_REDUCE_SCATTER:
    case DT_CALL_REDUCE_SCATTERV:
        return (struct dt_extents){ given, one };
    case DT_CALL_ALL_GATHER:
    case DT_CALL_ALL_GATHERV:
        return (struct dt_extents){ dt_blocks_count(&o->taken, rank) * dt_dtype_size(o->dtype),
                                    taken };
    case DT_CALL_ALL_TO_ALL:
    case DT_CALL_ALL_TO_ALLV:
        return (struct dt_extents){ given, taken };
    case DT_CALL_GATHER:
    case DT_CALL_GATHERV:
        return (struct dt_extents){ one, is_root ? taken : 0 };
    case DT_CALL_SCATTER:
    case DT_CALL_SCATTERV:
        return (struct dt_extents){ is_root ? given : 0, one };
    case DT_CALL_SEND:
        return (struct dt_extents){ one, 0 };
    case DT_CALL_RECV:
        return (struct dt_extents){ 0, one };
    default:
        return (struct dt_extents){ 0, 0 };
    }
}
