/* The kernels of charlm_kernels.h. Each thread computes every threads-th element. */
#include "charlm_kernels.h"

#define KERNEL(name)                                                                               \
    extern "C" __global__ void charlm_##name(struct charlm_##name k, uint64_t n)                   \
    {                                                                                              \
        uint64_t threads = gridDim.x * (uint64_t)blockDim.x;                                       \
                                                                                                   \
        for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += threads)    \
            charlm_##name##_at(&k, i);                                                             \
    }

CHARLM_KERNELS(KERNEL)
