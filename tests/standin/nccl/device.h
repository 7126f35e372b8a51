/* The calling thread's device as CUDA's runtime, which NCCL is written for, sees it.
 *
 * Rules: a thread that has no context has device 0; cudaSetDevice makes the device's primary
 * context the current one, in place of what was, and creates it if need be; the runtime never
 * releases a primary context. */
#ifndef TESTS_STANDIN_NCCL_DEVICE_H
#define TESTS_STANDIN_NCCL_DEVICE_H

#include "runtime/gpu/nvidia/abi_nccl.h"

ncclResult_t standin_get_device(CUdevice *device);
ncclResult_t standin_set_device(CUdevice device);

#endif
