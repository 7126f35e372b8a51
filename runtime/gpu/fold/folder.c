#include "runtime/gpu/fold/folder.h"

#include <stddef.h>

#include "runtime/gpu/device/lifelong.h"
#include "runtime/gpu/nvidia/cuda.h"

enum {
    THREADS = 256,     /* per block */
    MOST_BLOCKS = 1024 /* beyond that, each thread folds several elements */
};

static struct dt_gpu_lifelong dti_folders = DT_GPU_LIFELONG;

static CUresult load(void **made, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUfunction kernel = NULL;
    CUmodule module;
    CUresult result = cuda->cuModuleLoadData(&module, dti_fold_ptx);

    *function = "cuModuleLoadData";
    if (result)
        return result;
    *function = "cuModuleGetFunction";
    result = cuda->cuModuleGetFunction(&kernel, module, DT_GPU_FOLD_NAME);
    if (result)
        cuda->cuModuleUnload(module);
    *made = kernel;
    return result;
}

/* Compiling takes the driver about half a second, unless it has a folder for the result. Drivers
 * may also load and unload kernels only when the GPU is idle. */
CUresult dt_gpu_folder_load(CUcontext context, uint64_t life, CUfunction *kernel,
                            const char **function)
{
    void *made = NULL;
    CUresult result = life ? dt_gpu_lifelong_get(&dti_folders, context, life, load, &made, function)
                           : load(&made, function);

    *kernel = made;
    return result;
}

CUresult dt_gpu_folder_queue(CUfunction kernel, struct dt_gpu_fold fold, CUstream stream)
{
    void *parameters[] = { &fold };
    uint64_t blocks = (fold.count + THREADS - 1) / THREADS;

    if (blocks > MOST_BLOCKS)
        blocks = MOST_BLOCKS;
    return dt_cuda()->cuLaunchKernel(kernel, (unsigned)blocks, 1, 1, THREADS, 1, 1, 0, stream,
                                     parameters, NULL);
}
