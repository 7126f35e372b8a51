#include "runtime/gpu/device/copies.h"

#include <stdint.h>
#include <stdlib.h>

#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/pinned.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/nvidia/cuda.h"

static CUdeviceptr address(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

static void close_in_context(struct dt_gpu_copies *s)
{
    const struct dt_cuda *cuda = dt_cuda();

    for (int i = 0; i < DT_GPU_COPY_SLOTS; i++) {
        if (s->copied[i])
            cuda->cuEventDestroy_v2(s->copied[i]);
    }
    if (s->stream)
        cuda->cuStreamDestroy_v2(s->stream);
}

/* If the program has destroyed the context, that has freed everything. */
void dt_gpu_copies_close(struct dt_gpu_copies *s)
{
    struct dt_cuda_scope scope;

    if (s->context && dt_gpu_enter_life(&scope, s->context, s->life)) {
        close_in_context(s);
        dt_cuda_leave(&scope);
    }
    dt_pinned_release(s);
    *s = (struct dt_gpu_copies){ .next = s->next };
}

CUresult dt_gpu_copies_open(struct dt_gpu_copies *s, CUcontext context)
{
    const struct dt_cuda *cuda = dt_cuda();
    uint64_t life = dt_gpu_life(context);
    CUresult result;

    if (s->stream && s->context == context && s->life == life)
        return CUDA_SUCCESS;
    if (s->stream)
        dt_gpu_copies_close(s);
    s->context = context;
    s->life = life;
    result = dt_cuda_make_stream(&s->stream);
    for (int i = 0; !result && i < DT_GPU_COPY_SLOTS; i++)
        result = cuda->cuEventCreate(&s->copied[i], CU_EVENT_DISABLE_TIMING);
    if (result)
        dt_gpu_copies_close(s);
    return result;
}

CUresult dt_gpu_copies_fetch(struct dt_gpu_copies *s, int slot, void *host, const void *device,
                             size_t bytes)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = CUDA_SUCCESS;

    if (bytes)
        result = cuda->cuMemcpyDtoHAsync_v2(host, address(device), bytes, s->stream);
    return result ? result : cuda->cuEventRecord(s->copied[slot], s->stream);
}

CUresult dt_gpu_copies_store(struct dt_gpu_copies *s, int slot, void *device, const void *host,
                             size_t bytes)
{
    const struct dt_cuda *cuda = dt_cuda();
    CUresult result = CUDA_SUCCESS;

    if (bytes)
        result = cuda->cuMemcpyHtoDAsync_v2(address(device), host, bytes, s->stream);
    return result ? result : cuda->cuEventRecord(s->copied[slot], s->stream);
}

/* If copies may still run, the entry stays in its list, since memory is reserved by the entry's
 * address. dt_gpu_copies_in then recreates its stream. */
void dt_gpu_copies_settle(struct dt_gpu_copies *s, void *pinned, bool failed)
{
    if (!failed || dt_gpu_settles(s->stream))
        dt_pinned_give(pinned);
    else
        *s = (struct dt_gpu_copies){ .next = s->next, .context = s->context };
}

CUresult dt_gpu_copies_in(struct dt_gpu_copies **list, CUcontext context,
                          struct dt_gpu_copies **copies)
{
    struct dt_gpu_copies *s = *list;

    while (s && s->context != context)
        s = s->next;
    if (!s)
        s = calloc(1, sizeof *s);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!s->context) {
        s->next = *list;
        *list = s;
    }
    *copies = s;
    return dt_gpu_copies_open(s, context);
}

void dt_gpu_copies_close_all(struct dt_gpu_copies **list)
{
    while (*list) {
        struct dt_gpu_copies *s = *list;

        *list = s->next;
        dt_gpu_copies_close(s);
        free(s);
    }
}
