#include "runtime/gpu/fold/folder.h"

#include <stddef.h>

#include "runtime/gpu/nvidia/cuda.h"

enum {
    THREADS = 256,     /* per block */
    MOST_BLOCKS = 1024 /* beyond that, each thread folds several elements */
};

CUresult dt_gpu_folder_open(struct dt_gpu_folder *folder, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = CUDA_SUCCESS;

    *function = "cuModuleLoadData";
    if (!folder->module)
        result = cuda->cuModuleLoadData(&folder->module, dti_fold_ptx);
    if (result)
        return result;
    *function = "cuModuleGetFunction";
    return cuda->cuModuleGetFunction(&folder->function, folder->module, DT_GPU_FOLD_NAME);
}

void dt_gpu_folder_close(struct dt_gpu_folder *folder)
{
    if (folder->module)
        dt_cuda()->cuModuleUnload(folder->module);
    *folder = (struct dt_gpu_folder){ 0 };
}

CUresult dt_gpu_folder_queue(const struct dt_gpu_folder *folder, struct dt_gpu_fold fold,
                             CUstream stream)
{
    void *parameters[] = { &fold };
    uint64_t blocks = (fold.count + THREADS - 1) / THREADS;

    if (blocks > MOST_BLOCKS)
        blocks = MOST_BLOCKS;
    return dt_cuda()->cuLaunchKernel(folder->function, (unsigned)blocks, 1, 1, THREADS, 1, 1, 0,
                                     stream, parameters, NULL);
}
