/* How many bytes of its buffers a rank reads and writes in a call. Pure. */
#ifndef DT_GPU_EXTENTS_H
#define DT_GPU_EXTENTS_H

#include <stddef.h>

struct dt_operation;

struct dt_extents {
    size_t in;
    size_t out;
};

/* The operation must have been checked. */
struct dt_extents dt_extents_of(const struct dt_operation *o, int rank, int size);

#endif
