/* Which of NCCL's calls make an operation. */
#ifndef DT_GPU_NCCLCALLS_H
#define DT_GPU_NCCLCALLS_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/ncclapi.h"

struct dt_operation;

/* Whether NCCL has calls for the operation, among `size` ranks. Pure. */
bool dt_ncclcalls_serves(const struct dt_operation *o, int size);

struct dt_ncclcall {
    ncclComm_t comm;
    CUstream stream;
    int rank;
    int size;
    const char *name; /* set here: the function that failed, or the last one called */
};

/* Queues the operation on the stream. */
ncclResult_t dt_ncclcalls_queue(struct dt_ncclcall *call, const struct dt_operation *o);
/* Queues what comes after NCCL's kernel, once NCCL has put that on the stream: a copy of the
 * result, if NCCL does not put the result where the operation wants it. */
CUresult dt_ncclcalls_finish(const struct dt_ncclcall *call, const struct dt_operation *o);

#endif
