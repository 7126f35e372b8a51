/* The arithmetic of all-reduce on host memory: the kernels of the best instruction set that this
 * processor has. Pure, but for the choice of the set; pointers need no alignment.
 *
 * Results depend on the order of the sources alone: every element is folded from source 0 upward in
 * one accumulator (its own type; f32 for f16 and bf16) and rounded once, whatever the count, the
 * block or the instruction set. Integers wrap. DT_MIN and DT_MAX drop a NaN where the other operand
 * is a number; every NaN that is a result is the quiet positive one. */
#ifndef DT_KERNELS_REDUCE_H
#define DT_KERNELS_REDUCE_H

#include <stddef.h>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/kernels.h"

/* The set to use from now on, by name; NULL or "": the best. False: there is none of that name, or
 * not on this processor; nothing has changed. Not while another thread reduces. */
bool dt_reduce_use(const char *isa);
const char *dt_reduce_isa(void);
const struct dt_kernels *dt_reduce_kernels(void);
/* The names of the usable sets, with blanks between them. */
const char *dt_reduce_choices(char *text, size_t size);

/* f->n may be 1: a copy. Where op is DT_AVG, f->divisor is the number of ranks that are folded, or
 * 1 for a sum that is divided later; that of floats may be divided in two steps. For other
 * operations it is 1. */
void dt_fold(const struct dt_fold *f, dt_dtype_t dtype, dt_op_t op);

/* What folding a single source gives: a copy in which every NaN is that of dt_fold's results. dst
 * may be src. */
void dt_fold_alone(void *dst, const void *src, size_t count, dt_dtype_t dtype);

/* Divides by n: floats round once, integers truncate toward zero. */
void dt_divide(void *buf, size_t count, dt_dtype_t dtype, int n);

/* dst[i] = src[i] * factor, rounded to the type; dst may be src. For floats. */
void dt_scale(void *dst, const void *src, size_t count, dt_dtype_t dtype, double factor);

#endif
