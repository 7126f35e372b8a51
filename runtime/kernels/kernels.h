/* The inner loops of reductions, for each instruction set. All give the same bytes: each element is
 * reduced from source 0 upward in one accumulator (f16 and bf16: in f32, rounded once at the end).
 * A NaN in a result is always the same one: quiet, positive, without payload. */
#ifndef DT_KERNELS_KERNELS_H
#define DT_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/wireformat.h"

enum { DT_CACHE_LINE = 64 }; /* bytes */

/* A reduction of count elements of n sources. */
struct dt_fold {
    void *dst; /* may be one of the sources; otherwise overlaps none of them */
    const void *const *src;
    size_t n; /* at least 1 */
    size_t count;
    double divisor; /* divides the result, for floats before rounding; 1: no division */
};

typedef void (*dt_fold_f)(const struct dt_fold *fold);
/* dst[i] = src[i] * factor. dst may be src. */
typedef void (*dt_scale_f)(void *dst, const void *src, size_t count, double factor);
typedef void (*dt_pack_f)(void *dst, const void *src, size_t count, float step);
typedef void (*dt_keep_error_f)(void *residual, const void *wanted, const void *arrived,
                                size_t count, float weight);
/* Copies whole cache lines to an aligned address, past the caches if the instruction set can. */
typedef void (*dt_copy_past_f)(void *dst, const void *src, size_t bytes);

struct dt_kernels {
    const char *name;
    bool (*usable)(void);                      /* on this processor */
    dt_fold_f fold[DT_DTYPE_MAX][DT_FOLD_MAX]; /* NULL: no such combination, or a bit operation */
    dt_fold_f fold_bits[DT_FOLD_MAX];          /* of bytes: no bit depends on its neighbours */
    dt_scale_f scale[DT_DTYPE_MAX];            /* NULL: not for integers */
    dt_pack_f pack[DT_FORMATS];                /* in the formats of wireformat.h */
    dt_pack_f unpack[DT_FORMATS];
    dt_keep_error_f keep_error;
    dt_copy_past_f copy_past;
};

#endif
