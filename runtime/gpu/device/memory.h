/* Which kind of memory a pointer refers to. Asks NVIDIA's driver, if the program has loaded it. */
#ifndef DT_GPU_DEVICE_MEMORY_H
#define DT_GPU_DEVICE_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>

enum dt_memory {
    DT_MEMORY_HOST,
    DT_MEMORY_MANAGED, /* CPU and GPU can touch it; counts as host memory once the GPU is done */
    DT_MEMORY_DEVICE,
    DT_MEMORY_MIXED
};

struct dt_buffer_pair { /* those that a call reads and writes; NULL: none */
    const void *in;
    const void *out;
};

/* Where two buffers lie, which may be the same. A NULL buffer counts as lying where the other
 * does. */
enum dt_memory dt_memory_of(const void *a, const void *b);

/* The buffers of the last look that found no CUDA. */
extern struct dt_memory_hosts {
    _Atomic(const void *) a;
    _Atomic(const void *) b;
} dti_memory_hosts __attribute__((visibility("hidden")));

/* The same for calls of so few bytes that a look would be a good part of their cost. Takes buffers
 * that were in host memory at the last look to be there still. This would be wrong only if, without
 * a call on other buffers in between, the program returned the pages under a small buffer to the
 * kernel, loaded CUDA, and got the very same address from it. */
static inline enum dt_memory dt_memory_of_few(const void *a, const void *b)
{
    if (atomic_load_explicit(&dti_memory_hosts.a, memory_order_relaxed) == a &&
        atomic_load_explicit(&dti_memory_hosts.b, memory_order_relaxed) == b)
        return DT_MEMORY_HOST;
    return dt_memory_of(a, b);
}

#endif
