/* Modules and kernels. A kernel is either C code that the program exports (see standin.h) or
 * libdtrun's own (fold.c). A module contains the latter if its PTX has an entry of that name.
 *
 * Rules: cuModuleGetFunction returns CUDA_ERROR_NOT_FOUND for an unknown name. cuLaunchKernel
 * copies the parameters before it returns, and rejects an empty grid. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu/fold/fold.h"
#include "tests/standin/driver.h"

struct CUmod_st {
    bool has_fold;
};

struct launch {
    const struct standin_kernel *kernel;
    size_t threads;
    void *parameters[];
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (!result)
        result = standin_refused(__func__);
    if (result)
        return result;
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    *module = calloc(1, sizeof(**module));
    (*module)->has_fold = strstr(image, ".visible .entry " DT_GPU_FOLD_NAME "(");
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = standin_refused(__func__);
    char symbol[256];

    if (result)
        return result;
    if (!module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(symbol, sizeof(symbol), "standin_kernel_%s", name);
    if (module->has_fold && strcmp(name, DT_GPU_FOLD_NAME) == 0)
        *function = (CUfunction)(uintptr_t)&standin_fold;
    else
        *function = dlsym(RTLD_DEFAULT, symbol);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static void run(void *data)
{
    struct launch *launch = data;

    launch->kernel->run(launch->parameters, launch->threads);
}

/* Uses one allocation, since the stream frees only one: first the pointers, then what they point
 * to. */
static struct launch *new_launch(const struct standin_kernel *kernel, size_t threads,
                                 void **parameters)
{
    size_t size = sizeof(struct launch) + kernel->count * sizeof(void *), at = size;
    struct launch *launch;

    for (unsigned i = 0; i < kernel->count; i++)
        size += (kernel->sizes[i] + 15) & ~(size_t)15;
    launch = malloc(size);
    launch->kernel = kernel;
    launch->threads = threads;
    for (unsigned i = 0; i < kernel->count; i++) {
        launch->parameters[i] = (char *)launch + at;
        memcpy(launch->parameters[i], parameters[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 15) & ~(size_t)15;
    }
    return launch;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    const struct standin_kernel *kernel = (const void *)function;
    size_t threads = (size_t)grid_x * grid_y * grid_z * block_x * block_y * block_z;
    CUresult result = standin_ready();

    (void)shared_bytes;
    if (result)
        return result;
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!threads || (size_t)block_x * block_y * block_z > 1024 || extra)
        return CUDA_ERROR_INVALID_VALUE;
    return standin_enqueue(stream, run, new_launch(kernel, threads, parameters));
}
