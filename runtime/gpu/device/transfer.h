/* Moves the content of a GPU buffer to or from whoever takes or gives it in host memory, in pieces:
 * one is copied to the GPU or from it while another is written or read. */
#ifndef DT_GPU_DEVICE_TRANSFER_H
#define DT_GPU_DEVICE_TRANSFER_H

#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_comm;

/* Each piece in its turn; what it returns, if it is a failure, ends the transfer. */
typedef dt_result_t dt_gpu_piece(void *arg, void *host, size_t bytes);

/* For the thread that makes the call of this name: after all that it has queued on its default
 * streams. All returns when the GPU is done. DT_ERR_CUDA; what stops c ends waits for the GPU. */
dt_result_t dt_gpu_fetch(struct dt_comm *c, const char *name, const void *device, uint64_t bytes,
                         dt_gpu_piece *take, void *arg);
dt_result_t dt_gpu_store(struct dt_comm *c, const char *name, void *device, uint64_t bytes,
                         dt_gpu_piece *give, void *arg);

#endif
