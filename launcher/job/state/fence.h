/* A fence of MPI ranks: a barrier in which MPI libraries exchange addresses. Collects the data of
 * every host and gives all of it to each. Pure. */
#ifndef DT_JOB_STATE_FENCE_H
#define DT_JOB_STATE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"

struct dt_fence { /* zero-initialised */
    uint32_t nodes;
    uint32_t arrived; /* how many of them have arrived */
    bool *has_arrived;
    struct dt_strbuf data;
};

/* A generation on this number of hosts begins. */
void dt_fence_begin(struct dt_fence *f, uint32_t nodes);
/* Adds the data of a host. Returns whether all hosts have arrived; f->data then holds the data of
 * all until dt_fence_next. Ignores a host that has already arrived. */
bool dt_fence_arrive(struct dt_fence *f, uint32_t node, const void *data, size_t n);
void dt_fence_next(struct dt_fence *f);
void dt_fence_free(struct dt_fence *f);

#endif
