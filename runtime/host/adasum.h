/* The arithmetic of Adasum (Maleki et al., Scaling Distributed Training with Adaptive Summation,
 * MLSys 2021). Two vectors a and b become
 *
 *     (1 - ab / 2aa) a + (1 - ab / 2bb) b
 *
 * which is their sum if they are orthogonal, and their average if they are equal. Of several,
 * neighbours are combined first, then what has come of these with what has come of their
 * neighbours, and so on: their number is a power of two.
 *
 * In the end each vector has been multiplied by some number, its weight. The weights follow from
 * the products of the vectors with each other, so that a slice of all vectors is enough to work on.
 * All is computed in f64, in a fixed order, by the same instructions on every processor. A NaN, an
 * infinity, or f64 whose squares are infinite, make NaNs of everything. Pure; vectors need no
 * alignment. */
#ifndef DT_HOST_ADASUM_H
#define DT_HOST_ADASUM_H

#include <stddef.h>

#include "runtime/dtype.h"

/* n vectors, or a slice of each, one after the other: count elements of a type of floats. */
struct dt_adasum {
    const void *vectors;
    size_t n;
    size_t count;
    dt_dtype_t dtype;
};

/* Products of n vectors with themselves and each other; products[dt_adasum_product(i, j)] is that
 * of i and j, where j is not above i. */
static inline size_t dt_adasum_product(size_t i, size_t j)
{
    return i * (i + 1) / 2 + j;
}

static inline size_t dt_adasum_products(size_t n)
{
    return dt_adasum_product(n, 0);
}

/* Those of slices add up to those of the vectors. */
void dt_adasum_multiply(const struct dt_adasum *a, double *products);
/* Of n vectors. One that is zero, as others may become that cancel each other, changes nothing. */
void dt_adasum_weigh(const double *products, size_t n, double *weights);
/* The sum of all, with weights. Rounded once, to the nearest, ties to even (f64: for each vector);
 * a NaN is always the same one. dst is none of the vectors. */
void dt_adasum_combine(const struct dt_adasum *a, const double *weights, void *dst);

#endif
