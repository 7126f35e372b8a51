/* Host memory that the GPU can copy to and from by itself. Pinning takes long, so returned memory
 * is kept for later calls, up to a limit. For any thread. */
#ifndef DT_GPU_DEVICE_PINNED_H
#define DT_GPU_DEVICE_PINNED_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

/* Takes at least this many bytes: the owner's reserved memory if that is enough, else memory that
 * is pinned in the current context. Returns NULL if the driver gives no more, or must not be asked
 * (provision.h). */
void *dt_pinned_take(size_t bytes, const void *owner);
/* Accepts NULL. may_free: whether memory beyond the limit may be freed now, which waits for all
 * streams. */
void dt_pinned_give(void *memory, bool may_free);

/* Between dt_pinned_hold and dt_pinned_let_go no memory is freed, even beyond the limit: freeing
 * waits for all streams, including one that is held until a call has been made. The excess is freed
 * when memory is next returned. dt_pinned_hold waits for frees that are in progress. */
void dt_pinned_hold(void);
void dt_pinned_let_go(void);

/* Pins this much now and reserves it for an owner, which never takes more than one block at a time,
 * until it is released. Returns CUDA_ERROR_NOT_READY if the driver must not be asked now. */
CUresult dt_pinned_reserve(size_t bytes, const void *owner);
void dt_pinned_release(const void *owner);

#endif
