/* Calls on GPU memory through host memory: what a rank gives is copied to pinned memory, the
 * communicator's own call is made there, and what it takes is copied back. Every call, type and
 * operation goes so, on any GPUs, shared ones and different ones too, and NCCL is not needed.
 *
 * Calls that fold or spread whole buffers go in pieces, so that copies and calls overlap. */
#ifndef DT_GPU_STAGING_H
#define DT_GPU_STAGING_H

#include <stddef.h>

#include "runtime/dtrun.h"

struct dt_comm;
struct dt_gpu_copies;
struct dt_gpu_order;
struct dt_operation;

/* Makes the operation, which is one of all ranks, has been checked, and has taken its order. */
dt_result_t dt_staging_make(struct dt_comm *c, const struct dt_operation *o);
/* Makes before the first one what it needs, but for pinned memory of calls that need more of it
 * than those in pieces do. copies: which that memory is reserved for. */
dt_result_t dt_staging_open(struct dt_comm *c, const struct dt_gpu_order *order,
                            struct dt_gpu_copies **copies);
/* Pinned memory that the operation takes on this rank. */
size_t dt_staging_bytes(const struct dt_comm *c, const struct dt_operation *o);

#endif
