/* NVIDIA's driver. libdtrun neither links nor loads it: where the program has loaded it, its
 * functions are found by name. */
#ifndef DT_GPU_NVIDIA_CUDA_H
#define DT_GPU_NVIDIA_CUDA_H

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_cuda.h"

#define DT_CUDA_MEMBER(result, name, arguments) result(*name) arguments;

struct dt_cuda {
    DT_CUDA_FUNCTIONS(DT_CUDA_MEMBER)
    const char *lacks; /* a function that this driver is too old to have; NULL: none */
};

/* NULL: the program has loaded no driver so far. For any thread; costs a load once there is one. */
const struct dt_cuda *dt_cuda(void);

enum { DT_CUDA_TEXT = 160 };

/* "cuEventQuery: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)". Returns
 * text. */
const char *dt_cuda_describe(const char *function, CUresult error, char text[DT_CUDA_TEXT]);

/* Makes a context the thread's current one until dt_cuda_leave, and lets the thread make calls that
 * a graph capture of another thread would forbid. */
struct dt_cuda_scope {
    CUstreamCaptureMode mode;
};

CUresult dt_cuda_enter(struct dt_cuda_scope *scope, CUcontext context);
void dt_cuda_leave(struct dt_cuda_scope *scope);

/* A stream for what this library queues: of the highest priority, in the context that is current.
 * Streams share the queues of the hardware with others of their priority, so that those of the
 * library might stand behind one of the program's that waits for them. */
CUresult dt_cuda_make_stream(CUstream *stream);

#endif
