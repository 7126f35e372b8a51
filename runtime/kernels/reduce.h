/* The arithmetic of all-reduce in host memory, with the kernels of the best instruction set that
 * this processor has. Pure, except for the choice of the set. Pointers need no alignment.
 *
 * A result depends only on the order of the sources. Every element is reduced from source 0 upward
 * in one accumulator (its own type; f32 for f16 and bf16) and rounded once. Count, block and
 * instruction set do not matter. Integers wrap. DT_MIN and DT_MAX prefer a number to a NaN. A NaN
 * in a result is always the quiet positive one. */
#ifndef DT_KERNELS_REDUCE_H
#define DT_KERNELS_REDUCE_H

#include <stddef.h>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/kernels.h"

/* Chooses an instruction set by name; NULL or "": the best. False: there is none of that name on
 * this processor, and nothing has changed. No other thread may be reducing. */
bool dt_reduce_use(const char *isa);
const char *dt_reduce_isa(void);
const struct dt_kernels *dt_reduce_kernels(void);
/* The names of the usable sets, separated by blanks. */
const char *dt_reduce_choices(char *text, size_t size);

/* f->n may be 1: a copy. For DT_AVG, f->divisor is the number of ranks, or 1 if the sum is divided
 * later; for floats the division may be made in two steps. Integers are truncated toward zero. For
 * other operations the divisor is 1. */
void dt_fold(const struct dt_fold *f, dt_dtype_t dtype, dt_op_t op);

/* The result of reducing a single source: a copy in which every NaN is the canonical one. dst may
 * be src. */
void dt_fold_alone(void *dst, const void *src, size_t count, dt_dtype_t dtype);

/* dst[i] = src[i] * factor, rounded to the type. dst may be src. Only for floats. */
void dt_scale(void *dst, const void *src, size_t count, dt_dtype_t dtype, double factor);

#endif
