/* The kernel of fold.h, compiled by the driver for a context's device. */
#ifndef DT_GPU_FOLD_FOLDER_H
#define DT_GPU_FOLD_FOLDER_H

#include "runtime/gpu/fold/fold.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

/* The kernel as PTX text. */
extern const char dti_fold_ptx[] __attribute__((visibility("hidden")));

/* Loads the kernel into the current context, where it stays: once in each life of the context, or,
 * if life is 0 (life.h), each time. Returns an error with the function that failed in *function. */
CUresult dt_gpu_folder_load(CUcontext context, uint64_t life, CUfunction *kernel,
                            const char **function);
/* Queues a fold of at least one element. */
CUresult dt_gpu_folder_queue(CUfunction kernel, struct dt_gpu_fold fold, CUstream stream);

#endif
