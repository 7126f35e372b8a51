/* Which life of a context this is: after a device has been reset (cudaDeviceReset) the driver gives
 * a new context the handle of the old one, whose memory, streams and events are gone. For any
 * thread. */
#ifndef DT_GPU_DEVICE_LIFE_H
#define DT_GPU_DEVICE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/cuda.h"

/* The number that only this allocation of pinned memory has in this process (0: the driver does not
 * say), and whether the allocation still exists. Neither call waits for the GPU. */
uint64_t dt_gpu_allocation(const void *pinned);
bool dt_gpu_is_there(const void *pinned, uint64_t allocation);

/* The life of a context, which is current; 0: unknown. The first call in each life pins memory. */
uint64_t dt_gpu_life(CUcontext context);
/* Enters a context, until dt_cuda_leave, if it is still in this life. False: what was made in it is
 * gone. */
bool dt_gpu_enter_life(struct dt_cuda_scope *scope, CUcontext context, uint64_t life);

#endif
