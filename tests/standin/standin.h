/* What the stand-ins for libcuda.so.1 and libnccl.so.2 tell each other, and the C twins of kernels.
 *
 * A test program that has a kernel exports for it `const struct standin_kernel
 * standin_kernel_NAME`; cuModuleGetFunction finds that by the kernel's name, whatever the image
 * says. */
#ifndef TESTS_STANDIN_STANDIN_H
#define TESTS_STANDIN_STANDIN_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

#define STANDIN_API __attribute__((visibility("default")))

/* Every function of the ABI, as a definition has to have it. */
#define STANDIN_DECLARE(result, name, arguments) STANDIN_API result name arguments;
DT_CUDA_FUNCTIONS(STANDIN_DECLARE)

struct standin_kernel {
    unsigned count;      /* of parameters */
    const size_t *sizes; /* of each, in bytes */
    void (*run)(void *const *parameters, size_t threads);
};

/* Where the device's `size` bytes at ptr can be touched, NULL unless all are one allocation's. */
STANDIN_API void *standin_view(CUdeviceptr ptr, size_t size);

/* Runs function(data) as a kernel of the stream's, then frees data. */
STANDIN_API CUresult standin_enqueue(CUstream stream, CUhostFn function, void *data);

/* What tells hosts apart: STANDIN_HOST, or the host's name and network namespace. */
STANDIN_API unsigned long long standin_host(void);

/* As after a kernel's access to memory that is not the device's: from now on calls in the context
 * return CUDA_ERROR_ILLEGAL_ADDRESS. */
STANDIN_API void standin_fault(CUcontext context);
STANDIN_API bool standin_faulted(CUcontext context);

/* How many contexts this process has now. */
STANDIN_API int standin_contexts(void);

/* The number of this context's life; 0: it has ended. */
STANDIN_API unsigned long standin_life(CUcontext context);

/* Appends a line to the file that STANDIN_LOG names, if it does. */
STANDIN_API void standin_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A number from the environment. */
STANDIN_API long standin_setting(const char *name, long otherwise);

#endif
