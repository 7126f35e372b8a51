/* NVIDIA's driver. libdtrun neither links nor loads it. If the program has loaded it, its functions
 * are found by name. */
#ifndef DT_GPU_NVIDIA_CUDA_H
#define DT_GPU_NVIDIA_CUDA_H

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

#define DT_CUDA_MEMBER(result, name, arguments) result(*name) arguments;

struct dt_cuda {
    DT_CUDA_FUNCTIONS(DT_CUDA_MEMBER)
    const char *lacks; /* a function that this driver is too old to have; NULL: none */
};

/* Returns NULL if the program has not loaded the driver yet. For any thread. Once the driver is
 * found this costs one load. */
const struct dt_cuda *dt_cuda(void);

enum { DT_CUDA_TEXT = 320 };

/* In place of a result of the driver, which has none of this value: the process gets no memory or
 * no thread. */
#define DT_CUDA_NO_HOST_MEMORY ((CUresult)0x7fffffff)

/* DT_ERR_CUDA; or DT_ERR_NOMEM for DT_CUDA_NO_HOST_MEMORY. */
dt_result_t dt_cuda_code(CUresult error);
/* Writes a text such as "cuEventQuery: an illegal memory access was encountered
 * (CUDA_ERROR_ILLEGAL_ADDRESS, 700)", and what to do if that is known. Returns text. */
const char *dt_cuda_describe(const char *function, CUresult error, char text[DT_CUDA_TEXT]);

/* exit() ends the driver some time before the process. If the error says that this has begun, and
 * another thread is in exit(), waits for the end: otherwise this thread would tell other ranks of a
 * failed call before the agent can tell them of the exit. */
void dt_cuda_await_exit(CUresult error);

/* Makes a context the thread's current one until dt_cuda_leave, and lets the thread make calls that
 * another thread's graph capture would forbid. */
struct dt_cuda_scope {
    CUstreamCaptureMode mode;
    const char *failed; /* the function that failed */
};

CUresult dt_cuda_enter(struct dt_cuda_scope *scope, CUcontext context);
void dt_cuda_leave(struct dt_cuda_scope *scope);

/* Makes a stream of the highest priority, in the current context, for work of this library. Streams
 * of one priority share hardware queues, so the library's work might otherwise stand behind a
 * stream of the program that waits for it. Returns an error with the function that failed in
 * *function. */
CUresult dt_cuda_make_stream(CUstream *stream, const char **function);

#endif
