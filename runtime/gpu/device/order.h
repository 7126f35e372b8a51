/* The place of a call on GPU memory in the program's work. The call comes after all work that the
 * calling thread has queued on its two default streams (the per-thread one and the legacy one). A
 * call that is enqueued on a stream comes after the stream's earlier work. The program itself
 * orders work on other streams. */
#ifndef DT_GPU_DEVICE_ORDER_H
#define DT_GPU_DEVICE_ORDER_H

#include <stdbool.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_stream;

enum { DT_GPU_ORDER_EVENTS = 2 };

struct dt_gpu_order { /* all zero if not taken */
    CUcontext context;
    CUdevice device;
    CUevent events[DT_GPU_ORDER_EVENTS]; /* NULL: no event */
};

/* Called by the thread that makes the call `name` on the buffer ptr. Returns DT_ERR_UNSUPPORTED if
 * a graph is being captured there, or DT_ERR_CUDA. After an error there is nothing to drop. */
dt_result_t dt_gpu_order_take(struct dt_gpu_order *o, const char *name, const void *ptr);
/* The same for a call that is enqueued on a stream; ptr may be NULL. Returns DT_ERR_ARG if the
 * buffer lies on another device than the stream's, or belongs to another context. */
dt_result_t dt_gpu_order_take_on(struct dt_gpu_order *o, const char *name, const void *ptr,
                                 const struct dt_gpu_stream *s);
/* The same without taking a place in the stream's work: fills in context and device, and checks the
 * buffer. The caller checks that no graph is being captured. */
dt_result_t dt_gpu_order_check_on(struct dt_gpu_order *o, const char *name, const void *ptr,
                                  const struct dt_gpu_stream *s);
/* Whether kernels of the context can use the memory: it belongs to the context, or to none. */
bool dt_gpu_order_serves(const void *ptr, CUcontext context);
/* Work that is queued on stream from now on comes after o. The context of o is current. */
CUresult dt_gpu_order_follow(const struct dt_gpu_order *o, CUstream stream);
/* Awaits each event of the order until one fails. */
dt_result_t dt_gpu_order_await(const struct dt_gpu_order *o,
                               dt_result_t (*await)(void *arg, CUevent event), void *arg);
/* Accepts an order that was not taken. */
void dt_gpu_order_drop(struct dt_gpu_order *o);

#endif
