/* The inner loops of the reductions, once for every instruction set. All sets give the same bytes:
 * each element is folded from source 0 upward in one accumulator (f16 and bf16: f32, rounded once
 * at the end), and a NaN that comes out is always the one quiet, positive NaN without payload. */
#ifndef DT_KERNELS_KERNELS_H
#define DT_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/wireformat.h"

enum { DT_CACHE_LINE = 64 }; /* bytes */

/* What to fold: count elements of each of n sources. */
struct dt_fold {
    void *dst; /* may be one of the sources, or overlap none of them */
    const void *const *src;
    size_t n; /* 1 or more */
    size_t count;
    double divisor; /* of what was folded, floats before they are rounded; 1: nothing to divide */
};

typedef void (*dt_fold_f)(const struct dt_fold *fold);
/* dst[i] = src[i] * factor; dst may be src. */
typedef void (*dt_scale_f)(void *dst, const void *src, size_t count, double factor);
typedef void (*dt_pack_f)(void *dst, const void *src, size_t count, float step);
typedef void (*dt_keep_error_f)(void *residual, const void *wanted, const void *arrived,
                                size_t count, float weight);
/* Whole cache lines, to where one begins; past the caches, where the instruction set can do that.
 */
typedef void (*dt_copy_past_f)(void *dst, const void *src, size_t bytes);

struct dt_kernels {
    const char *name;
    bool (*usable)(void);                      /* by this processor */
    dt_fold_f fold[DT_DTYPE_MAX][DT_FOLD_MAX]; /* NULL: no such thing */
    dt_scale_f scale[DT_DTYPE_MAX];            /* NULL: not for integers */
    dt_pack_f pack[DT_FORMATS];                /* as wireformat.h has them */
    dt_pack_f unpack[DT_FORMATS];
    dt_keep_error_f keep_error;
    dt_copy_past_f copy_past;
};

#endif
