/* Whose memory a pointer names: asked of NVIDIA's driver, where the program has loaded it. */
#ifndef DT_GPU_DEVICE_MEMORY_H
#define DT_GPU_DEVICE_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>

enum dt_memory {
    DT_MEMORY_HOST,
    DT_MEMORY_MANAGED, /* both sides can touch it: counts as host memory, once the GPU is done */
    DT_MEMORY_DEVICE,
    DT_MEMORY_MIXED
};

/* Where two buffers, or one given twice, lie; NULL lies where the other one does. */
enum dt_memory dt_memory_of(const void *a, const void *b);

/* The buffers of the last look, when there was no CUDA. */
extern struct dt_memory_hosts {
    _Atomic(const void *) a;
    _Atomic(const void *) b;
} dti_memory_hosts __attribute__((visibility("hidden")));

/* The same for calls of so few bytes that to look would cost a good part of them. Buffers that were
 * in host memory at the last look are taken to be there still: before one of CUDA's could stand in
 * their place, the program would have to give the pages under a small buffer back to the kernel,
 * load CUDA, and be given this very address, all without a call on other buffers in between. */
static inline enum dt_memory dt_memory_of_few(const void *a, const void *b)
{
    if (atomic_load_explicit(&dti_memory_hosts.a, memory_order_relaxed) == a &&
        atomic_load_explicit(&dti_memory_hosts.b, memory_order_relaxed) == b)
        return DT_MEMORY_HOST;
    return dt_memory_of(a, b);
}

#endif
