/* Adasum by its definition, and elements of all floating-point types. */
#ifndef TESTS_UNIT_WEIGHED_H
#define TESTS_UNIT_WEIGHED_H

#include <stddef.h>

#include "runtime/dtrun.h"

/* Stores v, which has few enough bits for the type. */
void weighed_put(void *buf, size_t i, dt_dtype_t t, double v);
double weighed_get(const void *buf, size_t i, dt_dtype_t t);

/* Combines n vectors, a power of two. The first one holds the result. */
void weighed_combine(long double *const *v, size_t n, size_t count);

#endif
