/* The smaller of two sizes. */
#ifndef DT_BASE_MIN_H
#define DT_BASE_MIN_H

#include <stddef.h>

static inline size_t dt_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
