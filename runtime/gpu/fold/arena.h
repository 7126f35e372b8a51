/* Memory of a GPU that several processes have mapped: one makes it, and the others get its
 * descriptor. It lives as long as one of them has it, whatever becomes of the one that made it. */
#ifndef DT_GPU_FOLD_ARENA_H
#define DT_GPU_FOLD_ARENA_H

#include <stddef.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_arena { /* all zero at first */
    CUdeviceptr address;
    size_t bytes;
    CUmemGenericAllocationHandle handle;
};

/* All in the context that is current. bytes: what is needed; there may be more. */
CUresult dt_gpu_arena_make(struct dt_gpu_arena *a, CUdevice device, size_t bytes);
/* A descriptor of it, which the caller closes. */
CUresult dt_gpu_arena_export(const struct dt_gpu_arena *a, int *fd);
/* bytes: as they were named to the one that made it. */
CUresult dt_gpu_arena_import(struct dt_gpu_arena *a, CUdevice device, size_t bytes, int fd);
/* Nothing of this process uses it any more. */
void dt_gpu_arena_close(struct dt_gpu_arena *a);

#endif
