#include "runtime/gpu/device/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/gpu/nvidia/cuda.h"

struct dt_memory_hosts dti_memory_hosts;

static bool host_would_fault(const void *ptr)
{
    char byte;
    struct iovec here = { &byte, 1 }, there = { (void *)(uintptr_t)ptr, 1 };

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT;
}

/* After a fault of the GPU, the driver may answer any question with that fault. */
static enum dt_memory without_answer(CUresult error, const void *ptr)
{
    bool asks_host = error != CUDA_ERROR_INVALID_VALUE && error != CUDA_ERROR_NOT_INITIALIZED;

    return asks_host && host_would_fault(ptr) ? DT_MEMORY_DEVICE : DT_MEMORY_HOST;
}

/* The type of memory that CUDA does not know is 0: cuPointerGetAttribute would take the question
 * for an error, of which the driver's log and compute-sanitizer tell. The type of managed memory is
 * that of the place where the page lies at the moment. */
static enum dt_memory look(const struct dt_cuda *cuda, const void *ptr)
{
    CUpointer_attribute kinds[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED };
    unsigned type = 0, managed = 0;
    void *values[] = { &type, &managed };
    CUresult result = cuda->cuPointerGetAttributes(2, kinds, values, (CUdeviceptr)(uintptr_t)ptr);

    dt_cuda_await_exit(result);
    if (result)
        return without_answer(result, ptr);
    if (managed)
        return DT_MEMORY_MANAGED;
    return type == CU_MEMORYTYPE_DEVICE ? DT_MEMORY_DEVICE : DT_MEMORY_HOST;
}

enum dt_memory dt_memory_of(const void *a, const void *b)
{
    const struct dt_cuda *cuda = dt_cuda();
    enum dt_memory x, y;

    atomic_store_explicit(&dti_memory_hosts.a, cuda ? NULL : a, memory_order_relaxed);
    atomic_store_explicit(&dti_memory_hosts.b, cuda ? NULL : b, memory_order_relaxed);
    if (!cuda || !cuda->cuPointerGetAttributes)
        return DT_MEMORY_HOST;
    x = look(cuda, a ? a : b);
    y = !a || !b || a == b ? x : look(cuda, b);
    if (x == y)
        return x;
    return x == DT_MEMORY_DEVICE || y == DT_MEMORY_DEVICE ? DT_MEMORY_MIXED : DT_MEMORY_MANAGED;
}
