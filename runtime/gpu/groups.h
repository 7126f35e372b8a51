/* The ranks of a communicator grouped by the GPU that they use. The first rank of a group leads it.
 * Pure. */
#ifndef DT_GPU_GROUPS_H
#define DT_GPU_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/offer.h"

struct dt_gpu_groups { /* all zero at first */
    int n;
    int most;  /* the size of the largest group */
    int *of;   /* by rank: its group; groups are numbered in the order of their leaders */
    int *mine; /* the ranks of this rank's group, in ascending order */
    int members;
    int me; /* this rank's index in mine; 0: it leads */
};

/* Returns false if memory runs out. */
bool dt_gpu_groups_fill(struct dt_gpu_groups *g, const struct dt_gpu_offer *offers, int size,
                        int rank);
void dt_gpu_groups_free(struct dt_gpu_groups *g);

static inline bool dt_gpu_groups_leads(const struct dt_gpu_groups *g)
{
    return g->me == 0;
}

/* The number of this rank's group. */
static inline int dt_gpu_groups_own(const struct dt_gpu_groups *g)
{
    return g->of[g->mine[0]];
}

#endif
