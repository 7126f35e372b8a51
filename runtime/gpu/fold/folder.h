/* The kernel of fold.h, compiled by the driver for a context's device. */
#ifndef DT_GPU_FOLD_FOLDER_H
#define DT_GPU_FOLD_FOLDER_H

#include "runtime/gpu/fold/fold.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_folder { /* all zero at first */
    CUmodule module;
    CUfunction function;
};

/* The kernel as PTX text. */
extern const char dti_fold_ptx[] __attribute__((visibility("hidden")));

/* All calls use the context that is current at dt_gpu_folder_open, which returns an error with the
 * function that failed in *function. */
CUresult dt_gpu_folder_open(struct dt_gpu_folder *folder, const char **function);
void dt_gpu_folder_close(struct dt_gpu_folder *folder);
/* Queues a fold of at least one element. */
CUresult dt_gpu_folder_queue(const struct dt_gpu_folder *folder, struct dt_gpu_fold fold,
                             CUstream stream);

#endif
