/* Shared by the stand-ins for libcuda.so.1 and libnccl.so.2, and how kernels are written in C.
 *
 * A test program that has a kernel exports a C version of it as `const struct standin_kernel
 * standin_kernel_NAME`. cuModuleGetFunction finds it by the kernel's name and ignores the image. */
#ifndef TESTS_STANDIN_STANDIN_H
#define TESTS_STANDIN_STANDIN_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

#define STANDIN_API __attribute__((visibility("default")))

/* Every function of the ABI, declared as its definition must be. */
#define STANDIN_DECLARE(result, name, arguments) STANDIN_API result name arguments;
DT_CUDA_FUNCTIONS(STANDIN_DECLARE)

struct standin_kernel {
    unsigned count;      /* the number of parameters */
    const size_t *sizes; /* of each parameter, in bytes */
    void (*run)(void *const *parameters, size_t threads);
};

/* Where the host can touch `size` bytes of device memory at ptr. NULL unless one allocation holds
 * them all. */
STANDIN_API void *standin_view(CUdeviceptr ptr, size_t size);

/* Runs function(data) as a kernel of the stream, then frees data. */
STANDIN_API CUresult standin_enqueue(CUstream stream, CUhostFn function, void *data);

/* Tells hosts apart: a hash of STANDIN_HOST, or of the host's name and network namespace. */
STANDIN_API unsigned long long standin_host(void);

/* Does what a kernel's access to foreign memory does: from now on calls in the context return
 * CUDA_ERROR_ILLEGAL_ADDRESS. */
STANDIN_API void standin_fault(CUcontext context);
STANDIN_API bool standin_faulted(CUcontext context);

/* How many contexts this process has now. */
STANDIN_API int standin_contexts(void);

/* The number of this context's life, or 0 if it has ended. */
STANDIN_API unsigned long standin_life(CUcontext context);

/* Appends a line to the file that STANDIN_LOG names. Does nothing if it is not set. */
STANDIN_API void standin_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A number from the environment. */
STANDIN_API long standin_setting(const char *name, long otherwise);

#endif
