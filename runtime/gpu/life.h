/* Which life of a context this is: after a device has been reset (cudaDeviceReset) the driver gives
 * a new context the handle of the old one, whose memory, streams and events are gone. For any
 * thread. */
#ifndef DT_GPU_LIFE_H
#define DT_GPU_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/cuda.h"

/* Of pinned memory: the number that no other allocation of this process has, and whether it is
 * still there. Neither waits for the GPU. 0: the driver does not tell. */
uint64_t dt_gpu_allocation(const void *pinned);
bool dt_gpu_is_there(const void *pinned, uint64_t allocation);

/* Of a context, which is current; 0: that cannot be told. The first one asked for in each life
 * pins memory. */
uint64_t dt_gpu_life(CUcontext context);
/* Enters a context, until dt_cuda_leave, if it is still in this life. False: what was made in it is
 * gone. */
bool dt_gpu_enter_life(struct dt_cuda_scope *scope, CUcontext context, uint64_t life);

#endif
