/* Makes NCCL's communicators. Each is connected at the first call that needs it. */
#ifndef DT_GPU_NCCLINIT_H
#define DT_GPU_NCCLINIT_H

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
/* How long NCCL may take to connect the ranks of c. */
unsigned dt_ncclinit_seconds(const struct dt_comm *c);

#endif
