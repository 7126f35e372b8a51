/* The argument of the kernel that folds what the ranks of one GPU have copied into their arena.
 *
 * Results have the bytes of runtime/kernels/reduce.h: every element is folded from source 0 upward
 * in one accumulator (f32 for f16 and bf16), and rounded once. fold_kernel.h has the arithmetic,
 * for nvcc and for C compilers. */
#ifndef DT_GPU_FOLD_FOLD_H
#define DT_GPU_FOLD_FOLD_H

#include <stdint.h>

#define DT_GPU_FOLD_NAME "dtrun_fold"

/* The kernel's only parameter. Addresses are on the device, and multiples of an element's size. */
struct dt_gpu_fold {
    uint64_t dst;    /* destination; may be src */
    uint64_t src;    /* of source 0 */
    uint64_t stride; /* bytes from one source to the next */
    uint64_t count;  /* elements */
    /* Floats are first multiplied by prescale and rounded to their type. The result is divided
     * before it is rounded, then multiplied by postscale and rounded again. Integers are only
     * divided. A factor or divisor of 1 changes nothing. */
    double prescale;
    double divisor;
    double postscale;
    uint32_t n;     /* number of sources, at least 1 */
    uint32_t dtype; /* dt_dtype_t */
    uint32_t op;    /* dt_op_t, but not DT_ADASUM */
    uint32_t unused;
};

#endif
