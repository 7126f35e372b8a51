/* The element types and operations of collectives: what they are called, and what goes with what.
 * Pure. */
#ifndef DT_RUNTIME_DTYPE_H
#define DT_RUNTIME_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"

enum { DT_DTYPE_MAX = DT_F64 + 1, DT_OP_MAX = DT_BXOR + 1 };

size_t dt_dtype_size(dt_dtype_t dtype);      /* 0: no such type */
const char *dt_dtype_name(dt_dtype_t dtype); /* "?" likewise */
const char *dt_op_name(dt_op_t op);
bool dt_dtype_is_float(dt_dtype_t dtype);
/* Whether both exist and op is defined for dtype: bits are folded in integers only. */
bool dt_op_applies(dt_op_t op, dt_dtype_t dtype);

#endif
