/* What the kernel is given that folds what the ranks of one GPU have copied into their arena.
 *
 * Results have the bytes of runtime/kernels/reduce.h: every element is folded from source 0 upward
 * in one accumulator (f32 for f16 and bf16), and rounded once. fold_kernel.h has the arithmetic,
 * for nvcc and for C compilers. */
#ifndef DT_GPU_FOLD_FOLD_H
#define DT_GPU_FOLD_FOLD_H

#include <stdint.h>

#define DT_GPU_FOLD_NAME "dtrun_fold"

/* The kernel's one parameter. Addresses are the device's, and multiples of an element's size. */
struct dt_gpu_fold {
    uint64_t dst;    /* may be src */
    uint64_t src;    /* of source 0 */
    uint64_t stride; /* bytes from one source to the next */
    uint64_t count;  /* elements */
    /* Floats are multiplied by prescale and rounded to the type before all else, divided before
     * they are rounded, and then multiplied by postscale, and rounded again. Integers are only
     * divided. 1: nothing is done. */
    double prescale;
    double divisor;
    double postscale;
    uint32_t n;     /* sources; 1 or more */
    uint32_t dtype; /* dt_dtype_t */
    uint32_t op;    /* dt_op_t; not DT_ADASUM */
    uint32_t unused;
};

#endif
