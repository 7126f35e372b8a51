/* Tells apart the lives of a context. After a device has been reset (cudaDeviceReset), the driver
 * gives the new context the handle of the old one, whose memory, streams and events are gone. For
 * any thread. */
#ifndef DT_GPU_DEVICE_LIFE_H
#define DT_GPU_DEVICE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/cuda.h"

/* A number that identifies this allocation of pinned memory in this process (0: the driver does not
 * say), and whether the allocation still exists. Neither call waits for the GPU. */
uint64_t dt_gpu_allocation(const void *pinned);
bool dt_gpu_is_there(const void *pinned, uint64_t allocation);

/* The life of the context, which is current (0: unknown, since memory cannot be pinned). If the
 * driver does not number allocations, the context never seems to end. The first call in each life
 * pins memory. */
uint64_t dt_gpu_life(CUcontext context);
/* Enters the context, until dt_cuda_leave, if it is still in this life. Returns false if it is not:
 * what was made in that life is gone. */
bool dt_gpu_enter_life(struct dt_cuda_scope *scope, CUcontext context, uint64_t life);
/* Enters the context in which something was made, if it is still in this life, or own if nothing
 * was made yet (NULL). Returns CUDA_ERROR_CONTEXT_IS_DESTROYED if the life has ended, or another
 * error of the driver. */
CUresult dt_gpu_enter_made(struct dt_cuda_scope *scope, CUcontext made, uint64_t life,
                           CUcontext own);

#endif
