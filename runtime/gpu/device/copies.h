/* Copies between GPU memory and pinned host memory, on a stream of their own. Pinned memory can be
 * reserved for them, by their address (pinned.h).
 *
 * While the driver must not be asked for memory or streams (provision.h), a call for which
 * something is missing copies on a stream that it shares with other such calls, or to and from
 * memory that is not pinned. */
#ifndef DT_GPU_DEVICE_COPIES_H
#define DT_GPU_DEVICE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

enum {
    DT_GPU_COPY_SLOTS = 2,
    DT_GPU_COPY_CHUNK = 4 * 1024 * 1024, /* bytes of a slot, equal on all ranks */
    DT_GPU_COPY_ROOM = DT_GPU_COPY_SLOTS * DT_GPU_COPY_CHUNK,
};

struct dt_gpu_copies {          /* all zero at first */
    struct dt_gpu_copies *next; /* in a list */
    CUcontext context;
    uint64_t life; /* the context's life */
    CUstream stream;
    CUevent copied[DT_GPU_COPY_SLOTS]; /* recorded after the last copy of each slot */
    size_t wanted;                     /* bytes to reserve when the driver may be asked */
    const char *failed;                /* after an error: the function that failed */
};

/* Opens them in this context, which is current, unless they are open there. Returns
 * CUDA_ERROR_NOT_READY, and changes nothing, if the driver must not be asked. */
CUresult dt_gpu_copies_open(struct dt_gpu_copies *s, CUcontext context);
/* Reserves pinned memory in the current context. If the driver must not be asked, a later call of
 * this reserves it. For one thread at a time. */
void dt_gpu_copies_reserve(struct dt_gpu_copies *s, size_t bytes);
/* Queue a copy in a slot. With bytes 0, only record the event. */
CUresult dt_gpu_copies_fetch(struct dt_gpu_copies *s, int slot, void *host, const void *device,
                             size_t bytes);
CUresult dt_gpu_copies_store(struct dt_gpu_copies *s, int slot, void *device, const void *host,
                             size_t bytes);
void dt_gpu_copies_close(struct dt_gpu_copies *s);

/* Makes the stream that calls share, in this context, which is current. It stays. Returns an error
 * with the function that failed in *function. */
CUresult dt_gpu_copies_make_shared(CUcontext context, const char **function);

/* What one call uses. */
struct dt_gpu_copying {
    struct dt_gpu_copies *copies;
    uint8_t *host;
    bool waits; /* the host must wait for the work before the call, before it queues copies */
    bool pageable;
    const char *failed; /* in dt_gpu_copying_begin: the function that failed */
    struct dt_gpu_copies sharing;
};

/* Takes s (NULL: none) and host memory for a call in this context, which is current. With bytes 0,
 * takes no memory. */
CUresult dt_gpu_copying_begin(struct dt_gpu_copying *g, struct dt_gpu_copies *s, CUcontext context,
                              size_t bytes);
/* Returns the host memory. Returns false if the call has failed and copies may still run; then
 * their memory and stream are leaked. */
bool dt_gpu_copying_end(struct dt_gpu_copying *g, bool failed);

/* Finds the entry of this context, or adds one, which is not open. Entries of other contexts stay,
 * since making them again might wait for a stream that is held. NULL: out of memory. */
struct dt_gpu_copies *dt_gpu_copies_in(struct dt_gpu_copies **list, CUcontext context);
void dt_gpu_copies_close_all(struct dt_gpu_copies **list);

#endif
