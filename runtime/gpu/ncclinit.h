/* Makes NCCL's communicators. When a communicator is split that NCCL serves, all its ranks are in
 * that call, so ncclCommSplit can make those of the new ones. All others are connected at the first
 * call that needs them. */
#ifndef DT_GPU_NCCLINIT_H
#define DT_GPU_NCCLINIT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_comm;
struct dt_gpu_order;

/* Collective, in the context of the first call's memory: connects ranks 0 to size - 1 of NCCL's
 * communicator, unless they are connected. NCCL's rank 0 must be rank 0 of c. A rank with rank -1
 * takes no part. */
dt_result_t dt_ncclinit_connect(struct dt_comm *c, const struct dt_gpu_order *order, int rank,
                                int size);
/* Collective: connects all ranks, and allows calls that the program's thread launches (direct.h).
 * After a failure NCCL's communicator has been aborted. */
dt_result_t dt_ncclinit_open(struct dt_comm *c, const struct dt_gpu_order *order);
/* Collective on parent, which NCCL serves: see dt_gpu_split. */
dt_result_t dt_ncclinit_split(struct dt_comm *parent, struct dt_comm *child, int color);
/* Whether NCCL's communicator of c has been made by a split, in the context of this order. */
bool dt_ncclinit_fits(const struct dt_comm *c, const struct dt_gpu_order *order);
/* How long NCCL may take to connect the ranks of c. */
unsigned dt_ncclinit_seconds(const struct dt_comm *c);

#endif
