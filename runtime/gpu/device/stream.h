/* A stream of the program, on which calls are enqueued (runtime/api/view.h). */
#ifndef DT_GPU_DEVICE_STREAM_H
#define DT_GPU_DEVICE_STREAM_H

#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_stream {
    CUstream stream;
    CUcontext context;
    uint64_t life; /* of the context (life.h) */
    CUdevice device;
    struct dt_gpu_copies *copies;   /* the communicator's, in the stream's context */
    struct dt_gpu_copies *channels; /* for calls between two ranks; NULL before the first one */
    int n;
};

/* Resolves a program's handle: NULL is the legacy default stream, and default streams are those of
 * the thread's current context. Makes gates for it. name: of the public call. Returns DT_ERR_CUDA,
 * or DT_ERR_UNSUPPORTED if a graph is being captured there or the device has no stream memory
 * operations. */
dt_result_t dt_gpu_stream_find(struct dt_gpu_stream *s, const char *name, void *handle);
/* Returns DT_ERR_UNSUPPORTED if a graph is being captured on one of n streams of the current
 * context, or DT_ERR_CUDA. */
dt_result_t dt_gpu_stream_check_capture(const CUstream *streams, int n, const char *name);
/* In the stream's context: makes the copies of this one of n channels between two ranks, and
 * reserves pinned memory for them. A call uses them while it holds the channel's lock. *copies is
 * NULL if the driver must not be asked (provision.h). Returns DT_ERR_NOMEM or DT_ERR_CUDA. */
dt_result_t dt_gpu_stream_channel(struct dt_gpu_stream *s, const char *name, int channel, int n,
                                  size_t bytes, struct dt_gpu_copies **copies);
/* In the stream's context, while no call uses s->copies: makes what is missing, unless the driver
 * must not be asked. */
void dt_gpu_stream_make_missing(struct dt_gpu_stream *s);
/* No call may use the stream any more. */
void dt_gpu_stream_close(struct dt_gpu_stream *s);

#endif
