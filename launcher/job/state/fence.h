/* A barrier of MPI ranks, whose libraries exchange their addresses in it: what every host brings,
 * for all of them. Pure. */
#ifndef DT_JOB_STATE_FENCE_H
#define DT_JOB_STATE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"

struct dt_fence { /* all zero at first */
    uint32_t nodes;
    uint32_t here; /* how many of them have come */
    bool *has_come;
    struct dt_strbuf data;
};

/* A generation on so many hosts begins. */
void dt_fence_begin(struct dt_fence *f, uint32_t nodes);
/* Returns whether all have come: data then holds what they brought, until dt_fence_next. What a
 * host brings that has come already is dropped. */
bool dt_fence_come(struct dt_fence *f, uint32_t node, const void *data, size_t n);
void dt_fence_next(struct dt_fence *f);
void dt_fence_free(struct dt_fence *f);

#endif
