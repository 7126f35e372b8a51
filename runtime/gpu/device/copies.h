/* Copies between GPU memory and pinned host memory, on a stream of their own. Pinned memory can be
 * reserved for them, by their address (pinned.h). */
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
};

/* Opens them in this context, which is current. */
CUresult dt_gpu_copies_open(struct dt_gpu_copies *s, CUcontext context);
/* Queue a copy in a slot. With bytes 0, only record the event. */
CUresult dt_gpu_copies_fetch(struct dt_gpu_copies *s, int slot, void *host, const void *device,
                             size_t bytes);
CUresult dt_gpu_copies_store(struct dt_gpu_copies *s, int slot, void *device, const void *host,
                             size_t bytes);
/* Returns the pinned memory of a call. After a failed call copies may still run; then their memory
 * and stream are leaked. */
void dt_gpu_copies_settle(struct dt_gpu_copies *s, void *pinned, bool failed);
void dt_gpu_copies_close(struct dt_gpu_copies *s);

/* Finds the entry of this context, which is current, or makes one. Entries of other contexts stay,
 * since making them again might wait for a stream that is held. */
CUresult dt_gpu_copies_in(struct dt_gpu_copies **list, CUcontext context,
                          struct dt_gpu_copies **copies);
void dt_gpu_copies_close_all(struct dt_gpu_copies **list);

#endif
