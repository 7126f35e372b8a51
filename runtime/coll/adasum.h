/* The arithmetic of Adasum (Maleki et al., Scaling Distributed Training with Adaptive Summation,
 * MLSys 2021). Two vectors a and b become
 *
 *     (1 - ab / 2aa) a + (1 - ab / 2bb) b
 *
 * which is their sum if they are orthogonal, and their average if they are equal. Of several
 * vectors, neighbours are combined first, then neighbouring results, and so on. So their number is
 * a power of two.
 *
 * The result is a weighted sum of the vectors. All weights begin as 1, and only weights are kept
 * between the steps. Where the combination of some vectors is needed, it is computed from the
 * vectors again, in f64, so rounding to the type happens only at the end. The order is fixed, and
 * every processor uses the same operations. A NaN, an infinity, or an f64 whose square overflows
 * makes all results NaN. Pure. Vectors need no alignment. */
#ifndef DT_COLL_ADASUM_H
#define DT_COLL_ADASUM_H

#include <stddef.h>

#include "runtime/kernels/dtype.h"

/* n vectors, or a chunk of each, one after the other: count elements of a floating-point type. */
struct dt_adasum {
    const void *vectors;
    size_t n;
    size_t count;
    dt_dtype_t dtype;
};

/* The inner products of two vectors with themselves and with each other. */
struct dt_adasum_products {
    double aa;
    double ab;
    double bb;
};

/* A step combines pairs of neighbouring groups of "width" vectors: 1, then 2, 4 ... n / 2. This
 * computes their n / 2 / width products. The products of chunks add up to those of the vectors. */
void dt_adasum_multiply(const struct dt_adasum *a, const double *weights, size_t width,
                        struct dt_adasum_products *products);
/* Updates n weights after such a step. A vector of zeros changes nothing. */
void dt_adasum_weigh(const struct dt_adasum_products *products, size_t n, size_t width,
                     double *weights);
/* Stores the weighted sum of all vectors. It is rounded once, to nearest, ties to even (f64: once
 * for each vector). All NaNs have the same bytes. dst is none of the vectors. */
void dt_adasum_combine(const struct dt_adasum *a, const double *weights, void *dst);

#endif
