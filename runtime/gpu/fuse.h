/* One all-reduce for the GPU buffers of a bucket. They are copied into GPU memory of the bucket,
 * reduced there on whatever path serves the communicator, and copied back. Streams order the
 * copies; the host waits only for the ends.
 *
 * All ranks fuse or none does: the first call finds out whether every rank has got the memory. */
#ifndef DT_GPU_FUSE_H
#define DT_GPU_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_operation;

struct dt_gpu_fuse { /* one per bucket; all zero at first */
    bool opened;
    bool decided; /* whether the ranks have decided */
    bool fuses;   /* what they have decided */
    CUdevice device;
    CUcontext context;
    uint64_t life; /* the context's life (device/life.h) */
    CUstream stream;
    CUevent copied;     /* recorded after the last copy */
    CUdeviceptr memory; /* 0: none */
};

/* Allocates the memory, on the device of this order; later calls do nothing. Called by the thread
 * that fills the bucket: the driver may wait for a stream that only the communicator's thread lets
 * go on. Needs stream-ordered memory, since freeing any other would wait for the whole device. */
void dt_gpu_fuse_open(struct dt_gpu_fuse *f, const struct dt_gpu_order *order, size_t bytes);
/* Makes n all-reduces in place, as one if the ranks have the memory. They are of one type and
 * operation, in GPU memory, and together not larger than the memory. After a failure the GPU may
 * still use the memory, so it is leaked. */
dt_result_t dt_gpu_fuse_make(struct dt_comm *c, struct dt_gpu_fuse *f,
                             const struct dt_operation *parts, size_t n);
/* No call may use f any more. */
void dt_gpu_fuse_close(struct dt_gpu_fuse *f);

#endif
