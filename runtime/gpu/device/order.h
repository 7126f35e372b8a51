/* Where a call on GPU memory stands in the program's work: after all that the thread which made or
 * asked for the call has queued before on the default streams, its own and the legacy one; or, of
 * one that is enqueued on a stream, after what has been queued there. Work on other streams is for
 * the program to order. */
#ifndef DT_GPU_DEVICE_ORDER_H
#define DT_GPU_DEVICE_ORDER_H

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_stream;

enum { DT_GPU_ORDER_EVENTS = 2 };

struct dt_gpu_order { /* all zero: not taken */
    CUcontext context;
    CUdevice device;
    CUevent events[DT_GPU_ORDER_EVENTS]; /* NULL: there is none */
};

/* For the thread that makes the call of this name, on the buffer ptr. DT_ERR_UNSUPPORTED: a graph
 * is being captured there. DT_ERR_CUDA. Both leave nothing to drop. */
dt_result_t dt_gpu_order_take(struct dt_gpu_order *o, const char *name, const void *ptr);
/* The same for a call that is enqueued on a stream; ptr NULL: on no buffer. DT_ERR_ARG: the buffer
 * lies on another device than the stream's, or belongs to another context. */
dt_result_t dt_gpu_order_take_on(struct dt_gpu_order *o, const char *name, const void *ptr,
                                 const struct dt_gpu_stream *s);
/* The same without its place in the stream's work: checks only the buffer, and for a capture. */
dt_result_t dt_gpu_order_name_on(struct dt_gpu_order *o, const char *name, const void *ptr,
                                 const struct dt_gpu_stream *s);
/* What is queued on stream from now on comes after. o's context is current. */
CUresult dt_gpu_order_follow(const struct dt_gpu_order *o, CUstream stream);
/* Accepts one that was not taken. */
void dt_gpu_order_drop(struct dt_gpu_order *o);

#endif
