/* What is made once in each life of a context (life.h), and stays there: a stream, for example. For
 * any thread. */
#ifndef DT_GPU_DEVICE_LIFELONG_H
#define DT_GPU_DEVICE_LIFELONG_H

#include <pthread.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

struct dt_gpu_lifelong { /* begins as DT_GPU_LIFELONG */
    pthread_mutex_t mutex;
    struct dt_gpu_lifelong_entry *all;
};

/* clang-format off */
#define DT_GPU_LIFELONG { .mutex = PTHREAD_MUTEX_INITIALIZER }
/* clang-format on */

/* Makes something in the current context. Returns an error with the function that failed in
 * *function. */
typedef CUresult (*dt_gpu_make_f)(void **made, const char **function);

/* Finds what was made in this life of the context, which is current, or makes it. Fails as make
 * does. No lock is held while it is made, since the driver may wait, so two threads may each make
 * one. */
CUresult dt_gpu_lifelong_get(struct dt_gpu_lifelong *l, CUcontext context, uint64_t life,
                             dt_gpu_make_f make, void **made, const char **function);

#endif
