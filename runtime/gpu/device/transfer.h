/* Copies a GPU buffer to a consumer, or from a producer, in host memory. It goes in chunks, so that
 * one chunk is copied while the consumer or producer works on another. Or copies it in one piece to
 * host memory that is kept. */
#ifndef DT_GPU_DEVICE_TRANSFER_H
#define DT_GPU_DEVICE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/copies.h"

struct dt_comm;

/* Gets the chunks in order. An error that it returns ends the transfer. */
typedef dt_result_t (*dt_gpu_chunk_f)(void *arg, void *host, size_t bytes);

/* Called by the thread that makes the call `name`. The transfer comes after all work that the
 * thread has queued on its default streams. Returns when the GPU is done, or DT_ERR_CUDA. Whatever
 * stops c also ends the wait for the GPU. */
dt_result_t dt_gpu_fetch(struct dt_comm *c, const char *name, const void *device, uint64_t bytes,
                         dt_gpu_chunk_f consume, void *arg);
dt_result_t dt_gpu_store(struct dt_comm *c, const char *name, void *device, uint64_t bytes,
                         dt_gpu_chunk_f produce, void *arg);

/* Whole pages of host memory for copies of GPU buffers. They are pinned before the first copy, and
 * again if the program has destroyed the context in which they were. They keep their stream, since
 * some drivers make one only when the GPU is idle. */
struct dt_gpu_hostmem {
    void *memory;
    size_t bytes;
    /* zero at first */
    struct dt_gpu_copies copies;
    CUcontext context; /* in which they are pinned; NULL: not pinned */
    uint64_t life;     /* of the context */
    bool busy;         /* after a failure: the GPU may still write there, so the pages must stay */
};

/* As dt_gpu_fetch, into a place in m. If the driver does not pin m, the copy goes in chunks. */
dt_result_t dt_gpu_fetch_to(struct dt_comm *c, const char *name, const void *device, uint64_t bytes,
                            struct dt_gpu_hostmem *m, void *place);
/* Unpins the pages. */
void dt_gpu_hostmem_release(struct dt_gpu_hostmem *m);

#endif
