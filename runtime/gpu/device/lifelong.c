#include "runtime/gpu/device/lifelong.h"

#include <stddef.h>
#include <stdlib.h>

#include "runtime/gpu/nvidia/cuda.h"

struct dt_gpu_lifelong_entry {
    struct dt_gpu_lifelong_entry *next;
    CUcontext context;
    uint64_t life;
    void *made;
};

static void *find(struct dt_gpu_lifelong *l, CUcontext context, uint64_t life)
{
    const struct dt_gpu_lifelong_entry *e;

    pthread_mutex_lock(&l->mutex);
    e = l->all;
    while (e && (e->context != context || e->life != life))
        e = e->next;
    pthread_mutex_unlock(&l->mutex);
    return e ? e->made : NULL;
}

static void add(struct dt_gpu_lifelong *l, struct dt_gpu_lifelong_entry *e)
{
    pthread_mutex_lock(&l->mutex);
    e->next = l->all;
    l->all = e;
    pthread_mutex_unlock(&l->mutex);
}

CUresult dt_gpu_lifelong_get(struct dt_gpu_lifelong *l, CUcontext context, uint64_t life,
                             dt_gpu_make_f make, void **made, const char **function)
{
    struct dt_gpu_lifelong_entry *e;
    CUresult result;

    *made = find(l, context, life);
    if (*made)
        return CUDA_SUCCESS;
    e = calloc(1, sizeof *e);
    *function = "calloc";
    if (!e)
        return DT_CUDA_NO_HOST_MEMORY;
    result = make(made, function);
    if (result) {
        free(e);
        return result;
    }
    *e = (struct dt_gpu_lifelong_entry){ .context = context, .life = life, .made = *made };
    add(l, e);
    return CUDA_SUCCESS;
}
