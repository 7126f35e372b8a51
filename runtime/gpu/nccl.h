/* Calls on GPU memory by way of NCCL, where every rank has a GPU of its own. */
#ifndef DT_GPU_NCCL_H
#define DT_GPU_NCCL_H

#include "runtime/dtrun.h"
#include "runtime/gpu/abi_nccl.h"

struct dt_comm;
struct dt_operation;

struct dt_nccl { /* of a communicator; all zero at first */
    ncclComm_t comm;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUevent begun, done; /* the call that is made */
    CUdeviceptr scratch; /* of the call that is made */
};

/* Makes an operation that it serves (ncclcalls.h), which has taken its order. The first one
 * connects all ranks. After a failure NCCL has been told to give up. */
dt_result_t dt_nccl_make(struct dt_comm *c, const struct dt_operation *o);
void dt_nccl_close(struct dt_comm *c);

#endif
