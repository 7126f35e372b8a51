/* A copy of the registered buffers in host memory, from which a save in the background writes.
 *
 * It takes as much memory as the buffers. The memory is kept for the next save: copying into pages
 * that the kernel has yet to provide takes about ten times as long, and pinning them longer. */
#ifndef DT_CHECKPOINT_SNAPSHOT_H
#define DT_CHECKPOINT_SNAPSHOT_H

#include "runtime/checkpoint/format.h"
#include "runtime/gpu/device/transfer.h"

struct dt_snapshot {           /* zero-initialised */
    struct dt_buffers buffers; /* the copies, under the names of the originals */
    uint8_t *memory;           /* pages for copies of GPU buffers come first */
    size_t bytes;
    struct dt_gpu_hostmem from_gpu; /* those pages */
};

/* Copies the buffers, which are the same ones each time. Returns when they may change again.
 * DT_ERR_NOMEM: there is no memory for the copies. */
dt_result_t dt_snapshot_take(struct dt_snapshot *s, const struct dt_buffers *buffers);
void dt_snapshot_free(struct dt_snapshot *s);

#endif
