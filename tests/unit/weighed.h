/* What Adasum is by its definition, and elements of any type of floats. */
#ifndef TESTS_WEIGHED_H
#define TESTS_WEIGHED_H

#include <stddef.h>

#include "runtime/dtrun.h"

/* v has so few bits that the type has it. */
void weighed_put(void *buf, size_t i, dt_dtype_t t, double v);
double weighed_get(const void *buf, size_t i, dt_dtype_t t);

/* Combines n vectors, a power of two. What comes of all stands in the first one. */
void weighed_combine(long double *const *v, size_t n, size_t count);

#endif
