/* Creates what the ranks that share a GPU have in common (shared.h). */
#ifndef DT_GPU_SHAREDOPEN_H
#define DT_GPU_SHAREDOPEN_H

#include "runtime/dtrun.h"
#include "runtime/gpu/offer.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_shared;

/* Collective, in the order's context, while no call is in progress: gives every rank of every group
 * `slot` bytes of an arena, which replaces the previous one. If any rank fails, no rank keeps
 * anything, and why says what failed where. */
dt_result_t dt_shared_open(struct dt_comm *c, const struct dt_gpu_order *order, size_t slot,
                           char why[DT_GPU_TEXT]);
/* Frees everything but the groups. Call it in the arena's context, when nothing is queued any
 * more. */
void dt_shared_free(struct dt_shared *s);

#endif
