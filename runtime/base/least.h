/* The smaller of two sizes. */
#ifndef DT_BASE_LEAST_H
#define DT_BASE_LEAST_H

#include <stddef.h>

static inline size_t dt_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
