/* Calls on GPU memory through host memory: a rank's input is copied to pinned memory, the
 * communicator makes the call there, and the result is copied back. This serves every call, type
 * and operation, on any GPUs, even shared or different ones, without NCCL.
 *
 * Calls that fold or spread whole buffers are cut into chunks, so that copies and calls overlap. */
#ifndef DT_GPU_STAGING_H
#define DT_GPU_STAGING_H

#include <stddef.h>

#include "runtime/dtrun.h"

struct dt_comm;
struct dt_gpu_copies;
struct dt_gpu_order;
struct dt_operation;

/* Makes the operation, which is one of all ranks. It has been checked and has taken its order. */
dt_result_t dt_staging_make(struct dt_comm *c, const struct dt_operation *o);
/* Makes what the first call needs, except the pinned memory of calls that need more than calls in
 * chunks do. copies: the owner for which that memory is reserved. */
dt_result_t dt_staging_open(struct dt_comm *c, const struct dt_gpu_order *order,
                            struct dt_gpu_copies **copies);
/* How much pinned memory the operation takes on this rank. */
size_t dt_staging_bytes(const struct dt_comm *c, const struct dt_operation *o);

#endif
