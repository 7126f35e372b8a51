/* The arithmetic of all-reduce on host memory. Pure; pointers need no alignment.
 *
 * Results depend on the order of the sources alone: every element is folded from source 0 upward in
 * its own type, whatever the count, the block or the vector width. Integers wrap. DT_MIN and DT_MAX
 * drop a NaN where the other operand is a number. DT_AVG folds as DT_SUM; dt_divide completes it.
 */
#ifndef DT_HOST_REDUCE_H
#define DT_HOST_REDUCE_H

#include <stddef.h>

#include "runtime/dtrun.h"

size_t dt_dtype_size(dt_dtype_t dtype); /* 0: no such type */

/* dst may be one of the n >= 1 sources, or overlap none of them. */
void dt_reduce(void *dst, const void *const *src, size_t n, size_t count, dt_dtype_t dtype,
               dt_op_t op);

/* Divides by n: floats round once, integers truncate toward zero. */
void dt_divide(void *buf, size_t count, dt_dtype_t dtype, int n);

#endif
