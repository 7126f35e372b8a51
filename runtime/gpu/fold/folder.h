/* The kernel of fold.h, as the driver has compiled it for a context's device. */
#ifndef DT_GPU_FOLD_FOLDER_H
#define DT_GPU_FOLD_FOLDER_H

#include "runtime/gpu/fold/fold.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_folder { /* all zero at first */
    CUmodule module;
    CUfunction function;
};

/* The kernel as text. */
extern const char dti_fold_ptx[] __attribute__((visibility("hidden")));

/* All in the context of the first, which is current. */
CUresult dt_gpu_folder_open(struct dt_gpu_folder *folder);
void dt_gpu_folder_close(struct dt_gpu_folder *folder);
/* Queues a fold of one element or more. */
CUresult dt_gpu_folder_queue(const struct dt_gpu_folder *folder, struct dt_gpu_fold fold,
                             CUstream stream);

#endif
