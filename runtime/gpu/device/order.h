/* The place of a call on GPU memory in the program's work. The call comes after all work that the
 * calling thread has queued on its two default streams (the per-thread one and the legacy one). A
 * call that is enqueued on a stream comes after the stream's earlier work. The program itself
 * orders work on other streams. */
#ifndef DT_GPU_DEVICE_ORDER_H
#define DT_GPU_DEVICE_ORDER_H

#include <stdbool.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/memory.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_stream;

enum { DT_GPU_ORDER_EVENTS = 2 };

struct dt_gpu_order { /* all zero if not taken */
    CUcontext context;
    CUdevice device;
    bool bound; /* the memory belongs to the context; that of cuMemCreate belongs to none */
    CUevent events[DT_GPU_ORDER_EVENTS]; /* NULL: no event */
};

/* Called by the thread that makes the call `name` on one buffer or two. Returns DT_ERR_ARG if no
 * context can use both, DT_ERR_UNSUPPORTED if a graph is being captured there, or DT_ERR_CUDA.
 * After an error there is nothing to drop. */
dt_result_t dt_gpu_order_take(struct dt_gpu_order *o, const char *name,
                              const struct dt_buffer_pair *buffers);
/* The same for a call that is enqueued on a stream, which may have no buffer. Returns DT_ERR_ARG if
 * the stream's context cannot use one. */
dt_result_t dt_gpu_order_take_on(struct dt_gpu_order *o, const char *name,
                                 const struct dt_buffer_pair *buffers,
                                 const struct dt_gpu_stream *s);
/* The same without taking a place in the stream's work: fills in the rest, and checks the buffers.
 * The caller checks that no graph is being captured. */
dt_result_t dt_gpu_order_check_on(struct dt_gpu_order *o, const char *name,
                                  const struct dt_buffer_pair *buffers,
                                  const struct dt_gpu_stream *s);
/* Work that is queued on stream from now on comes after o. The context of o is current. */
CUresult dt_gpu_order_follow(const struct dt_gpu_order *o, CUstream stream);
/* Awaits each event of the order until one fails. */
dt_result_t dt_gpu_order_await(const struct dt_gpu_order *o,
                               dt_result_t (*await)(void *arg, CUevent event), void *arg);
/* Accepts an order that was not taken. */
void dt_gpu_order_drop(struct dt_gpu_order *o);

#endif
