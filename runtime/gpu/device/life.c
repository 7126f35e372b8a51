#include "runtime/gpu/device/life.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "runtime/gpu/nvidia/cuda.h"

struct life {
    struct life *next;
    CUcontext context;
    void *canary;        /* pinned memory that is freed only when the context ends */
    uint64_t allocation; /* 0: the driver does not say */
};

/* The life of a context if the driver does not number allocations. */
#define ONLY_LIFE UINT64_MAX

static struct {
    pthread_mutex_t mutex;
    struct life *all;
} dti_lives = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static CUresult ask_allocation(const void *pinned, unsigned long long *id)
{
    CUresult result = dt_cuda()->cuPointerGetAttribute(id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                       (CUdeviceptr)(uintptr_t)pinned);

    dt_cuda_await_exit(result);
    return result;
}

uint64_t dt_gpu_allocation(const void *pinned)
{
    unsigned long long id = 0;

    return ask_allocation(pinned, &id) ? 0 : id;
}

/* After a fault of the GPU, the driver may answer any question with that fault. Then the context
 * still exists, although its memory can no longer be used. */
static bool says_gone(CUresult error)
{
    switch (error) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return true;
    default:
        return false;
    }
}

bool dt_gpu_is_there(const void *pinned, uint64_t allocation)
{
    unsigned long long id = 0;
    CUresult result;

    if (!allocation)
        return true;
    result = ask_allocation(pinned, &id);
    return result ? !says_gone(result) : id == allocation;
}

static uint64_t life_of(const struct life *l)
{
    return l->allocation ? l->allocation : ONLY_LIFE;
}

/* Returns whether the context's newest life is known here and has not ended. The caller holds the
 * mutex. */
static bool find_life_locked(CUcontext context, uint64_t *life)
{
    const struct life *l = dti_lives.all;

    while (l && l->context != context)
        l = l->next;
    if (!l || !dt_gpu_is_there(l->canary, l->allocation))
        return false;
    *life = life_of(l);
    return true;
}

static bool find_life(CUcontext context, uint64_t *life)
{
    bool found;

    pthread_mutex_lock(&dti_lives.mutex);
    found = find_life_locked(context, life);
    pthread_mutex_unlock(&dti_lives.mutex);
    return found;
}

/* Returns the context's life. If another thread has added it first, l is freed, but not its canary,
 * since the driver might wait for the GPU. The newest life comes first. */
static uint64_t add_life(struct life *l)
{
    uint64_t life = life_of(l);

    pthread_mutex_lock(&dti_lives.mutex);
    if (find_life_locked(l->context, &life)) {
        free(l);
    } else {
        l->next = dti_lives.all;
        dti_lives.all = l;
    }
    pthread_mutex_unlock(&dti_lives.mutex);
    return life;
}

uint64_t dt_gpu_life(CUcontext context)
{
    uint64_t life = 0;
    struct life *l = find_life(context, &life) ? NULL : calloc(1, sizeof *l);

    if (!l)
        return life;
    l->context = context;
    if (dt_cuda()->cuMemHostAlloc(&l->canary, sizeof *l, CU_MEMHOSTALLOC_PORTABLE)) {
        free(l);
        return 0;
    }
    l->allocation = dt_gpu_allocation(l->canary);
    return add_life(l);
}

/* Looks before it enters, since the handle of a context that the program has destroyed may point to
 * memory that the driver has freed. */
static CUresult enter_if_alive(struct dt_cuda_scope *scope, CUcontext context, uint64_t life)
{
    uint64_t now;

    scope->failed = "cuCtxPushCurrent";
    if (life && (!find_life(context, &now) || now != life))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return dt_cuda_enter(scope, context);
}

bool dt_gpu_enter_life(struct dt_cuda_scope *scope, CUcontext context, uint64_t life)
{
    return enter_if_alive(scope, context, life) == CUDA_SUCCESS;
}

CUresult dt_gpu_enter_made(struct dt_cuda_scope *scope, CUcontext made, uint64_t life,
                           CUcontext own)
{
    return made ? enter_if_alive(scope, made, life) : dt_cuda_enter(scope, own);
}
