/* The kernel of runtime/gpu/fold/fold.h. fold_ptx.c contains nvcc's output. */
#include "runtime/gpu/fold/fold_kernel.h"

extern "C" __global__ void dtrun_fold(struct dt_gpu_fold fold)
{
    dt_gpu_fold_some(&fold, blockIdx.x * (uint64_t)blockDim.x + threadIdx.x,
                     gridDim.x * (uint64_t)blockDim.x);
}
