/* Errors of a public call because of a failure of CUDA that concerns only this call. */
#ifndef DT_GPU_NVIDIA_CUDAFAIL_H
#define DT_GPU_NVIDIA_CUDAFAIL_H

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

/* Returns the result. The message is such as "rank 3 (host2): dt_send: what". */
dt_result_t dt_cuda_fail_as(dt_result_t result, const char *name, const char *what);
/* Returns dt_cuda_code(error). What is dt_cuda_describe's text. */
dt_result_t dt_cuda_fail(const char *name, const char *function, CUresult error);
/* Returns DT_ERR_CUDA if there is no driver or it lacks a function. */
dt_result_t dt_cuda_check(const char *name);

#endif
