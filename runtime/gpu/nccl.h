/* Calls on GPU memory that NCCL makes: of all ranks, where each has a GPU of its own, or of those
 * that lead the others on theirs (shared.h). */
#ifndef DT_GPU_NCCL_H
#define DT_GPU_NCCL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

struct dt_comm;
struct dt_errand;
struct dt_gpu_order;
struct dt_launch;
struct dt_ncclguard;
struct dt_operation;

enum { DT_NCCL_KEPT = 64 };

struct dt_nccl { /* of a communicator; all zero at first */
    ncclComm_t comm;
    struct dt_ncclguard *guard; /* of its use; NULL before it is connected */
    int rank;                   /* in it */
    int size;
    CUdevice device;
    CUcontext context;
    uint64_t life; /* of it (device/life.h) */
    CUstream stream;
    CUevent begun, done; /* the call that is made */
    CUdeviceptr scratch; /* of the call that is made, from the stream's own order; 0: none */
    bool has_pools;  /* the device has memory in a stream's order; else scratch memory is kept */
    _Atomic int end; /* enum of nccl.c: whether a thread has begun to end it, */
    struct dt_errand *ending;       /* and how far that is; NULL: there is no thread for it */
    CUdeviceptr kept[DT_NCCL_KEPT]; /* by the power of two of its bytes; 0: none so far */
    struct dt_gpu_watched watched;  /* the communicator's thread, inside a call that blocks */
};

/* Makes an operation that it serves (ncclcalls.h), which has taken its order. The first one
 * connects all ranks. After a failure NCCL has been told to give up. */
dt_result_t dt_nccl_make(struct dt_comm *c, const struct dt_operation *o);
/* Collective: connects all ranks before the first one. After a failure likewise. */
dt_result_t dt_nccl_open(struct dt_comm *c, const struct dt_gpu_order *order);
void dt_nccl_close(struct dt_comm *c);

/* What it is made of. Collective, in the context of the first call's memory: connects ranks 0 to
 * size
 * - 1 of NCCL's communicator, of which the first is the first of c; rank -1 takes no part. */
dt_result_t dt_nccl_connect(struct dt_comm *c, const struct dt_gpu_order *order, int rank,
                            int size);
/* Whether calls have a place among those of other communicators (dt_nccl_agree). */
bool dt_nccl_needs_agreement(const struct dt_comm *c);
/* Collective, before the call: its place among the calls of all communicators, which it takes up
 * until dt_launch_end; and inside of it the wait for that. */
dt_result_t dt_nccl_agree(struct dt_comm *c, const struct dt_operation *o,
                          struct dt_launch *launch);
dt_result_t dt_nccl_await_turn(struct dt_comm *c, const struct dt_launch *launch);
/* Inside of a call: has the operation, by NCCL's ranks, put on the stream; and whether NCCL has
 * failed since. */
dt_result_t dt_nccl_queue(struct dt_comm *c, const struct dt_operation *o, CUstream stream);
dt_result_t dt_nccl_check(struct dt_comm *c);
/* After a failure, which has been told. */
void dt_nccl_give_up(struct dt_comm *c);

#endif
