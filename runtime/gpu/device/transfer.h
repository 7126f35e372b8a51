/* Copies a GPU buffer to a consumer, or from a producer, in host memory. It goes in chunks, so that
 * one chunk is copied while the consumer or producer works on another. */
#ifndef DT_GPU_DEVICE_TRANSFER_H
#define DT_GPU_DEVICE_TRANSFER_H

#include <stdint.h>

#include "runtime/dtrun.h"

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

#endif
