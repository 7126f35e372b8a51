/* Calls on GPU memory of ranks that share GPUs, which NCCL refuses. The ranks of one GPU share an
 * arena: memory of their leader that all have mapped. Each rank copies its data into the arena. The
 * leader reduces the data with a kernel and, if there are several GPUs, takes part in NCCL for its
 * group. Then each rank copies the result out of the arena.
 *
 * The ranks' streams wait for each other by words in host memory (words.h). So no kernel spins
 * while it waits for a process on the same GPU, and a rank's thread waits only for the end of the
 * call. */
#ifndef DT_GPU_SHARED_H
#define DT_GPU_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/fold/arena.h"
#include "runtime/gpu/fold/folder.h"
#include "runtime/gpu/fold/words.h"
#include "runtime/gpu/groups.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_operation;

struct dt_shared { /* one per communicator; all zero at first */
    struct dt_gpu_groups groups;
    CUcontext context;
    uint64_t life; /* the context's life (device/life.h) */
    CUdevice device;
    CUstream stream;
    CUevent begun, done; /* of the current call */
    struct dt_gpu_words words;
    struct dt_gpu_arena arena;
    size_t slot;           /* bytes of the arena for each rank of the group */
    CUfunction kernel;     /* used by the leader */
    _Atomic uint32_t step; /* the last step that has been queued */
    struct dt_gpu_watched watched;
};

/* Why memory of the device cannot be shared. */
enum dt_gpu_unable dt_shared_unable(CUdevice device);
/* Sets up this path for c, after all ranks have chosen it from these offers. */
dt_result_t dt_shared_begin(struct dt_comm *c, const struct dt_gpu_offer *offers);
/* Whether such a communicator can make the operation. */
bool dt_shared_serves(const struct dt_comm *c, const struct dt_operation *o);
/* Collective: makes sure that everything the operation needs exists. If that is impossible, sets
 * why on all ranks and returns DT_OK. */
dt_result_t dt_shared_prepare(struct dt_comm *c, const struct dt_operation *o,
                              char why[DT_GPU_TEXT]);
/* Collective: does the same for all later operations. */
dt_result_t dt_shared_reserve(struct dt_comm *c, const struct dt_gpu_order *order,
                              char why[DT_GPU_TEXT]);
/* Executes an operation that dt_shared_serves accepts, after dt_shared_prepare and with its place
 * in the program's streams (dt_gpu_order_take). */
dt_result_t dt_shared_make(struct dt_comm *c, const struct dt_operation *o);
void dt_shared_close(struct dt_comm *c);

#endif
