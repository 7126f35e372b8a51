/* The element types and operations of collectives: names, sizes, and which go together. Pure. */
#ifndef DT_KERNELS_DTYPE_H
#define DT_KERNELS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

enum {
    DT_DTYPE_MAX = DT_F64 + 1,
    DT_OP_MAX = DT_ADASUM + 1,
    DT_FOLD_MAX = DT_BXOR + 1, /* number of operations that work element by element */
};

extern const uint8_t dt_dtype_sizes[DT_DTYPE_MAX];

/* The public function, inlined: every call here uses it several times. */
extern inline __attribute__((gnu_inline)) size_t dt_dtype_size(dt_dtype_t dtype)
{
    return (unsigned)dtype < DT_DTYPE_MAX ? dt_dtype_sizes[dtype] : 0;
}

static inline bool dt_dtype_is_float(dt_dtype_t dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16 || dtype == DT_F32 || dtype == DT_F64;
}

/* Whether both exist and op can reduce elements of dtype: bitwise operations need integers, and
 * DT_ADASUM is never accepted. */
static inline bool dt_op_applies(dt_op_t op, dt_dtype_t dtype)
{
    return (unsigned)dtype < DT_DTYPE_MAX && (unsigned)op < DT_FOLD_MAX &&
           (op < DT_BAND || !dt_dtype_is_float(dtype));
}

const char *dt_dtype_name(dt_dtype_t dtype); /* "?": no such type */
const char *dt_op_name(dt_op_t op);

#endif
