/* How what ranks that share a GPU have in common comes to be (shared.h). */
#ifndef DT_GPU_SHAREDOPEN_H
#define DT_GPU_SHAREDOPEN_H

#include "runtime/dtrun.h"
#include "runtime/gpu/offer.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_shared;

/* Collective, in the order's context, while no call is being made: gives every rank of every group
 * so many bytes of an arena, in place of the one before. On failure of any rank nobody has
 * anything, and why says what failed where. */
dt_result_t dt_shared_open(struct dt_comm *c, const struct dt_gpu_order *order, size_t slot,
                           char why[DT_GPU_TEXT]);
/* Gives back all but the groups; in its context, where nothing is queued any more. */
void dt_shared_free(struct dt_shared *s);

#endif
