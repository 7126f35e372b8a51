/* What a public call says of a failure of CUDA's that concerns this call alone. */
#ifndef DT_GPU_NVIDIA_CUDAFAIL_H
#define DT_GPU_NVIDIA_CUDAFAIL_H

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

/* DT_ERR_CUDA, with what dt_cuda_describe says after the name of the public call. */
dt_result_t dt_cuda_fail(const char *name, const char *function, CUresult error);
/* DT_ERR_CUDA: there is no driver, or it lacks something. */
dt_result_t dt_cuda_check(const char *name);

#endif
