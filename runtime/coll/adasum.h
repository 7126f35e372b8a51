/* The arithmetic of Adasum (Maleki et al., Scaling Distributed Training with Adaptive Summation,
 * MLSys 2021). Two vectors a and b become
 *
 *     (1 - ab / 2aa) a + (1 - ab / 2bb) b
 *
 * which is their sum if they are orthogonal, and their average if they are equal. Of several,
 * neighbours are combined first, then what has come of these with what has come of their
 * neighbours, and so on: their number is a power of two.
 *
 * In the end each vector has been multiplied by some number, its weight, which begins as 1. Only
 * weights are kept from step to step: what has come of some vectors is added up anew where it is
 * needed, in f64, so that rounding to the type comes once, in the end. All is done in a fixed
 * order, by the same instructions on every processor. A NaN, an infinity, or f64 whose squares are
 * infinite, make NaNs of everything. Pure; vectors need no alignment. */
#ifndef DT_COLL_ADASUM_H
#define DT_COLL_ADASUM_H

#include <stddef.h>

#include "runtime/kernels/dtype.h"

/* n vectors, or a slice of each, one after the other: count elements of a type of floats. */
struct dt_adasum {
    const void *vectors;
    size_t n;
    size_t count;
    dt_dtype_t dtype;
};

/* Of two vectors with themselves and each other. */
struct dt_adasum_products {
    double aa;
    double ab;
    double bb;
};

/* A step combines each two neighbours of what has come of "width" vectors each: 1, then 2, 4 ...
 * n / 2. Their products, n / 2 / width of them, of slices add up to those of the vectors. */
void dt_adasum_multiply(const struct dt_adasum *a, const double *weights, size_t width,
                        struct dt_adasum_products *products);
/* What such a step makes of n weights. What is zero changes nothing. */
void dt_adasum_weigh(const struct dt_adasum_products *products, size_t n, size_t width,
                     double *weights);
/* The sum of all, with weights. Rounded once, to the nearest, ties to even (f64: for each vector);
 * a NaN is always the same one. dst is none of the vectors. */
void dt_adasum_combine(const struct dt_adasum *a, const double *weights, void *dst);

#endif
