/* What all paths need of a call on GPU memory. */
#ifndef DT_GPU_DEVICECALL_H
#define DT_GPU_DEVICECALL_H

#include "runtime/comm/comm.h"
#include "runtime/gpu/nvidia/abi_cuda.h"
#include "runtime/gpu/operation.h"

/* The operation as all ranks have to make it. */
struct dt_call dt_gpu_call(const struct dt_operation *o);
/* DT_ERR_ARG, which is final: its memory is on another device than that of the first call was, for
 * which the path has made all that it needs. */
dt_result_t dt_gpu_check_device(struct dt_comm *c, const struct dt_operation *o, CUdevice first);

#endif
