/* Modules and kernels. A kernel is either C code that the program exports (see standin.h) or
 * libdtrun's own (fold.c). A module contains the latter if its PTX has an entry of that name.
 *
 * Rules: a module and its functions belong to the context that was current when the module was
 * loaded. cuModuleGetFunction returns CUDA_ERROR_NOT_FOUND for an unknown name. cuLaunchKernel
 * needs a stream of the function's context, copies the parameters before it returns, and rejects an
 * empty grid. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/gpu/fold/fold.h"
#include "tests/standin/driver.h"

struct CUfunc_st {
    CUfunction next;
    const struct standin_kernel *kernel;
    CUmodule module;
};

struct CUmod_st {
    CUcontext context;
    unsigned long life; /* of the context */
    bool has_fold;
    CUfunction functions;
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
    standin_await_load();
    standin_log("pid %d loads a module", (int)getpid());
    *module = calloc(1, sizeof(**module));
    (*module)->context = context;
    (*module)->life = context->life;
    (*module)->has_fold = strstr(image, ".visible .entry " DT_GPU_FOLD_NAME "(");
    return CUDA_SUCCESS;
}

/* A fault does not keep the context from being the right one. */
static CUresult check_context(CUmodule module)
{
    CUcontext context;
    CUresult result = standin_current(&context);

    if (result && result != CUDA_ERROR_ILLEGAL_ADDRESS)
        return result;
    pthread_mutex_lock(&standin_mutex);
    standin_need_life_locked(module->context, module->life, "a module");
    pthread_mutex_unlock(&standin_mutex);
    return context == module->context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult result = check_context(module);

    if (result)
        return result;
    while (module->functions) {
        CUfunction function = module->functions;

        module->functions = function->next;
        free(function);
    }
    free(module);
    return CUDA_SUCCESS;
}

static const struct standin_kernel *find_kernel(CUmodule module, const char *name)
{
    char symbol[256];

    if (module->has_fold && strcmp(name, DT_GPU_FOLD_NAME) == 0)
        return &standin_fold;
    snprintf(symbol, sizeof(symbol), "standin_kernel_%s", name);
    return dlsym(RTLD_DEFAULT, symbol);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = standin_refused(__func__);
    const struct standin_kernel *kernel;

    if (result)
        return result;
    if (!module || !name)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_context(module);
    if (result)
        return result;
    standin_await_load();
    kernel = find_kernel(module, name);
    if (!kernel)
        return CUDA_ERROR_NOT_FOUND;
    *function = calloc(1, sizeof(**function));
    **function = (struct CUfunc_st){ module->functions, kernel, module };
    module->functions = *function;
    return CUDA_SUCCESS;
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
    size_t threads = (size_t)grid_x * grid_y * grid_z * block_x * block_y * block_z;
    CUresult result = standin_ready();

    (void)shared_bytes;
    if (result)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    result = standin_check_place(stream, function->module->context);
    if (result)
        return result;
    if (!threads || (size_t)block_x * block_y * block_z > 1024 || extra)
        return CUDA_ERROR_INVALID_VALUE;
    return standin_enqueue(stream, run, new_launch(function->kernel, threads, parameters));
}
