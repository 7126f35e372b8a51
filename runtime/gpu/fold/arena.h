/* GPU memory that several processes have mapped. One makes it, and the others get its descriptor.
 * It lives until the last of them closes it, even if its maker has ended. */
#ifndef DT_GPU_FOLD_ARENA_H
#define DT_GPU_FOLD_ARENA_H

#include <stddef.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_arena { /* all zero at first */
    CUdeviceptr address;
    size_t bytes;
    CUmemGenericAllocationHandle handle;
};

/* All calls use the current context. bytes: the least size. Two return an error with the function
 * that failed in *function. */
CUresult dt_gpu_arena_make(struct dt_gpu_arena *a, CUdevice device, size_t bytes,
                           const char **function);
/* Returns a descriptor of the arena, which the caller closes. */
CUresult dt_gpu_arena_export(const struct dt_gpu_arena *a, int *fd);
/* bytes: the number given to dt_gpu_arena_make. */
CUresult dt_gpu_arena_import(struct dt_gpu_arena *a, CUdevice device, size_t bytes, int fd,
                             const char **function);
/* This process must not use it any more. */
void dt_gpu_arena_close(struct dt_gpu_arena *a);

#endif
