/* The calling thread's device as CUDA's runtime sees it, since NCCL uses the runtime.
 *
 * Rules: a thread without a context has device 0. cudaSetDevice replaces the current context with
 * the device's primary context, and creates it if necessary. The runtime never releases a primary
 * context. */
#ifndef TESTS_STANDIN_NCCL_DEVICE_H
#define TESTS_STANDIN_NCCL_DEVICE_H

#include "runtime/gpu/nvidia/abi_nccl.h"

ncclResult_t standin_get_device(CUdevice *device);
ncclResult_t standin_set_device(CUdevice device);

#endif
