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

/* Returns 0 if the context's life is unknown or has ended. */
static uint64_t find_life(CUcontext context)
{
    const struct life *l;
    uint64_t allocation = 0;

    pthread_mutex_lock(&dti_lives.mutex);
    l = dti_lives.all;
    while (l && l->context != context)
        l = l->next;
    if (l && l->allocation && dt_gpu_is_there(l->canary, l->allocation))
        allocation = l->allocation;
    pthread_mutex_unlock(&dti_lives.mutex);
    return allocation;
}

/* The newest life comes first. */
static void add_life(struct life *l)
{
    pthread_mutex_lock(&dti_lives.mutex);
    l->next = dti_lives.all;
    dti_lives.all = l;
    pthread_mutex_unlock(&dti_lives.mutex);
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
    allocation = l->allocation;
    add_life(l);
    return allocation;
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
