/* A stream of the program's, on which calls are enqueued (runtime/api/view.h). */
#ifndef DT_GPU_DEVICE_STREAM_H
#define DT_GPU_DEVICE_STREAM_H

#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_stream {
    CUstream stream;
    CUcontext context;
    CUdevice device;
    struct dt_gpu_copies *copies;   /* of its communicator, in its context */
    struct dt_gpu_copies *channels; /* of calls between two ranks; NULL before the first */
    int n;
};

/* What a program's handle names: NULL is the legacy default stream, and default streams are those
 * of the thread's current context. name: of the public call. DT_ERR_CUDA; DT_ERR_UNSUPPORTED: a
 * graph is being captured there, or the device has no stream memory operations. */
dt_result_t dt_gpu_stream_find(struct dt_gpu_stream *s, const char *name, void *handle);
/* DT_ERR_UNSUPPORTED: a graph is being captured on one of n streams of the context that is current.
 * DT_ERR_CUDA. */
dt_result_t dt_gpu_stream_check_capture(const CUstream *streams, int n, const char *name);
/* In its context: the copies of this one of n channels between two ranks. A call uses them while it
 * holds the channel's lock. To make them while the stream is held might wait for it.
 * DT_ERR_NOMEM. DT_ERR_CUDA.
 */
dt_result_t dt_gpu_stream_channel(struct dt_gpu_stream *s, const char *name, int channel, int n,
                                  struct dt_gpu_copies **copies);
/* No call uses it any more. */
void dt_gpu_stream_close(struct dt_gpu_stream *s);

#endif
