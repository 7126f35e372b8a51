#include "runtime/gpu/device/life.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "runtime/gpu/nvidia/cuda.h"

struct life {
    struct life *next;
    CUcontext context;
    void *canary; /* pinned memory that is freed only when the context ends */
    uint64_t allocation;
};

static struct {
    pthread_mutex_t mutex;
    struct life *all;
} dti_lives = { .mutex = PTHREAD_MUTEX_INITIALIZER };

uint64_t dt_gpu_allocation(const void *pinned)
{
    unsigned long long id = 0;

    if (dt_cuda()->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                         (CUdeviceptr)(uintptr_t)pinned))
        return 0;
    return id;
}

bool dt_gpu_is_there(const void *pinned, uint64_t allocation)
{
    return !allocation || dt_gpu_allocation(pinned) == allocation;
}

/* Returns 0 if the context's life is unknown or has ended. The caller holds the mutex. */
static uint64_t find_life_locked(CUcontext context)
{
    const struct life *l = dti_lives.all;

    while (l && l->context != context)
        l = l->next;
    return l && l->allocation && dt_gpu_is_there(l->canary, l->allocation) ? l->allocation : 0;
}

static uint64_t find_life(CUcontext context)
{
    uint64_t allocation;

    pthread_mutex_lock(&dti_lives.mutex);
    allocation = find_life_locked(context);
    pthread_mutex_unlock(&dti_lives.mutex);
    return allocation;
}

/* Returns the context's life. If another thread has added it first, l is freed, but not its canary,
 * since the driver might wait for the GPU. The newest life comes first. */
static uint64_t add_life(struct life *l)
{
    uint64_t allocation;

    pthread_mutex_lock(&dti_lives.mutex);
    allocation = find_life_locked(l->context);
    if (allocation) {
        free(l);
    } else {
        allocation = l->allocation;
        l->next = dti_lives.all;
        dti_lives.all = l;
    }
    pthread_mutex_unlock(&dti_lives.mutex);
    return allocation;
}

uint64_t dt_gpu_life(CUcontext context)
{
    uint64_t allocation = find_life(context);
    struct life *l = allocation ? NULL : calloc(1, sizeof *l);

    if (!l)
        return allocation;
    l->context = context;
    if (dt_cuda()->cuMemHostAlloc(&l->canary, sizeof *l, CU_MEMHOSTALLOC_PORTABLE)) {
        free(l);
        return 0;
    }
    l->allocation = dt_gpu_allocation(l->canary);
    return add_life(l);
}

bool dt_gpu_enter_life(struct dt_cuda_scope *scope, CUcontext context, uint64_t life)
{
    if (dt_cuda_enter(scope, context))
        return false;
    if (dt_gpu_life(context) == life)
        return true;
    dt_cuda_leave(scope);
    return false;
}
