/* Calls of a communicator on GPU memory: by which way they are made, and all that needs. */
#ifndef DT_GPU_GPU_H
#define DT_GPU_GPU_H

#include "runtime/dtrun.h"
#include "runtime/gpu/copies.h"
#include "runtime/gpu/nccl.h"
#include "runtime/gpu/offer.h"

struct dt_comm;
struct dt_operation;

struct dt_gpu { /* of a communicator; all zero at first */
    enum dt_gpu_way way;
    struct dt_gpu_copies copies;
    struct dt_nccl nccl;
};

/* Makes an operation on GPU memory, or on managed memory, that has been checked and has taken its
 * order. */
dt_result_t dt_gpu_make(struct dt_comm *c, const struct dt_operation *o);
void dt_gpu_close(struct dt_comm *c);

#endif
