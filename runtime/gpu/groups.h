/* The ranks of a communicator by the GPU that they use: a group shares one, and its first rank
 * leads it. Pure. */
#ifndef DT_GPU_GROUPS_H
#define DT_GPU_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/offer.h"

struct dt_gpu_groups { /* all zero at first */
    int n;
    int most;  /* ranks of the largest */
    int *of;   /* by rank: its group, numbered from 0 in the order of their leaders */
    int *mine; /* the ranks of this rank's group, ascending */
    int members;
    int me; /* the place of this rank among them; 0: it leads */
};

/* False: there is no memory. */
bool dt_gpu_groups_fill(struct dt_gpu_groups *g, const struct dt_gpu_offer *offers, int size,
                        int rank);
void dt_gpu_groups_free(struct dt_gpu_groups *g);

static inline bool dt_gpu_groups_leads(const struct dt_gpu_groups *g)
{
    return g->me == 0;
}

/* This rank's. */
static inline int dt_gpu_groups_own(const struct dt_gpu_groups *g)
{
    return g->of[g->mine[0]];
}

#endif
