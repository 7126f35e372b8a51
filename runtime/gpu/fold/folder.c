#include "runtime/gpu/fold/folder.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "runtime/gpu/nvidia/cuda.h"

enum {
    THREADS = 256,     /* per block */
    MOST_BLOCKS = 1024 /* beyond that, each thread folds several elements */
};

struct loaded {
    struct loaded *next;
    CUcontext context;
    uint64_t life;
    CUfunction kernel;
};

static struct {
    pthread_mutex_t mutex;
    struct loaded *all;
} dti_folders = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static CUfunction find_loaded(CUcontext context, uint64_t life)
{
    const struct loaded *l;

    pthread_mutex_lock(&dti_folders.mutex);
    l = dti_folders.all;
    while (l && (l->context != context || l->life != life))
        l = l->next;
    pthread_mutex_unlock(&dti_folders.mutex);
    return l ? l->kernel : NULL;
}

static void add_loaded(struct loaded *l)
{
    pthread_mutex_lock(&dti_folders.mutex);
    l->next = dti_folders.all;
    dti_folders.all = l;
    pthread_mutex_unlock(&dti_folders.mutex);
}

static CUresult load(CUfunction *kernel, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUmodule module;
    CUresult result = cuda->cuModuleLoadData(&module, dti_fold_ptx);

    *function = "cuModuleLoadData";
    if (result)
        return result;
    *function = "cuModuleGetFunction";
    result = cuda->cuModuleGetFunction(kernel, module, DT_GPU_FOLD_NAME);
    if (result)
        cuda->cuModuleUnload(module);
    return result;
}

/* Compiling takes the driver about half a second, unless it has a folder for the result. Drivers
 * may also load and unload kernels only when the GPU is idle. Called without the lock, since the
 * driver may wait. */
CUresult dt_gpu_folder_load(CUcontext context, uint64_t life, CUfunction *kernel,
                            const char **function)
{
    struct loaded *l;
    CUresult result;

    *kernel = life ? find_loaded(context, life) : NULL;
    if (*kernel)
        return CUDA_SUCCESS;
    l = calloc(1, sizeof *l);
    *function = "calloc";
    if (!l)
        return DT_CUDA_NO_HOST_MEMORY;
    result = load(kernel, function);
    if (result) {
        free(l);
        return result;
    }
    *l = (struct loaded){ .context = context, .life = life, .kernel = *kernel };
    add_loaded(l);
    return CUDA_SUCCESS;
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
