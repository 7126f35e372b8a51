/* One NCCL communicator: connecting all ranks within a deadline, waiting for work without ever
 * being stuck in CUDA, and taking it down when a peer is gone. */
#ifndef DT_NCCL_COMM_H
#define DT_NCCL_COMM_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "runtime/device.h"

struct dt_nccl {
    const struct dt_device_host *host;
    int device;
    ncclComm_t comm; /* NULL once it has been taken down */
    cudaStream_t stream;
    int *token;         /* device memory: what a barrier reduces */
    bool stuck;         /* a kernel may wait for ever: freeing device memory would wait with it */
    dt_result_t failed; /* DT_OK, or what every further call returns */
};

/* Collective over host's ranks; the device is current. timeout_ms is for NCCL's part alone, which
 * has no limit of its own. On failure *out is NULL. */
dt_result_t dt_nccl_connect(const struct dt_device_host *host, int device, int timeout_ms,
                            struct dt_nccl **out);

/* Waits until what was begun by call, which returned started, is done. An NCCL or CUDA error, a
 * lost peer or an abort of the job takes the communicator down, so that no kernel goes on waiting
 * for a peer that will not come. */
dt_result_t dt_nccl_wait(struct dt_nccl *n, const char *call, ncclResult_t started);

void dt_nccl_disconnect(struct dt_nccl *n); /* accepts NULL */

/* Abort and destruction can hang inside NCCL (its issues 549, 863, 992, 1013, 1777), so another
 * thread makes the call. Returns 0, or -1 when it did not end in time: the thread and the
 * communicator are then left to themselves. */
int dt_nccl_end(ncclComm_t comm, int device, ncclResult_t (*end)(ncclComm_t), int timeout_ms);

#endif
