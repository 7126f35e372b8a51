/* Calls on GPU memory of ranks that share GPUs, which NCCL refuses. The ranks of one GPU have an
 * arena there, memory of the one that leads them which all have mapped. They copy into it what they
 * give; their leader folds it with a kernel, and takes part in NCCL for all of them where there are
 * several GPUs; and they copy the result out of it.
 *
 * Streams keep the order by words in host memory (words.h): no kernel spins for a process that
 * shares its GPU, and hosts only wait for the end. */
#ifndef DT_GPU_SHARED_H
#define DT_GPU_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/fold/arena.h"
#include "runtime/gpu/fold/folder.h"
#include "runtime/gpu/fold/words.h"
#include "runtime/gpu/groups.h"

struct dt_comm;
struct dt_gpu_order;
struct dt_operation;

struct dt_shared { /* of a communicator; all zero at first */
    struct dt_gpu_groups groups;
    CUcontext context;
    CUdevice device;
    CUstream stream;
    CUevent begun, done; /* the call that is made */
    struct dt_gpu_words words;
    struct dt_gpu_arena arena;
    size_t slot;                 /* bytes of the arena that each rank of the group has */
    struct dt_gpu_folder folder; /* the leader's */
    uint32_t step;               /* the last one that has been queued */
};

/* Why memory of the device cannot be shared. */
enum dt_gpu_unable dt_shared_unable(CUdevice device);
/* After all ranks have chosen this path by these offers. */
dt_result_t dt_shared_begin(struct dt_comm *c, const struct dt_gpu_offer *offers);
/* Of such a communicator. */
bool dt_shared_serves(const struct dt_comm *c, const struct dt_operation *o);
/* Collective: sees to it that there is all that the operation needs. Where there cannot be, why
 * says so, on all ranks, and nothing has failed. */
dt_result_t dt_shared_prepare(struct dt_comm *c, const struct dt_operation *o,
                              char why[DT_GPU_TEXT]);
/* Collective: the same for all operations that are to come. */
dt_result_t dt_shared_reserve(struct dt_comm *c, const struct dt_gpu_order *order,
                              char why[DT_GPU_TEXT]);
/* Makes an operation that it serves and is prepared for, which has taken its order. */
dt_result_t dt_shared_make(struct dt_comm *c, const struct dt_operation *o);
void dt_shared_close(struct dt_comm *c);

#endif
