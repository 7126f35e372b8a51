/* Calls on GPU memory that NCCL makes: among all ranks if each has a GPU of its own, or among the
 * leaders of ranks that share GPUs (shared.h). */
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

struct dt_nccl { /* one per communicator; all zero at first */
    ncclComm_t comm;
    struct dt_ncclguard *guard; /* guards its use; NULL before it is connected */
    int rank;                   /* this rank's number in it */
    int size;
    CUdevice device;
    CUcontext context;
    uint64_t life; /* the context's life (device/life.h) */
    CUstream stream;
    CUevent begun, done; /* of the current call */
    CUdeviceptr scratch; /* for the current call, allocated in stream order; 0: none */
    bool has_pools;  /* whether the device has stream-ordered memory; else scratch memory is kept */
    _Atomic int end; /* enum in nccl.c: whether a thread has begun to end it */
    struct dt_errand *ending;       /* ends it; NULL: no thread could be started */
    CUdeviceptr kept[DT_NCCL_KEPT]; /* scratch memory by the logarithm of its size; 0: none yet */
    struct dt_gpu_watched watched;  /* for the communicator's thread inside a call that blocks */
};

/* Makes an operation that dt_ncclcalls_serves accepts and that has taken its order. The first one
 * connects all ranks. After a failure NCCL has been told to give up. */
dt_result_t dt_nccl_make(struct dt_comm *c, const struct dt_operation *o);
/* Collective: connects all ranks before the first operation. After a failure NCCL has been told to
 * give up. */
dt_result_t dt_nccl_open(struct dt_comm *c, const struct dt_gpu_order *order);
void dt_nccl_close(struct dt_comm *c);
/* How long NCCL may take to connect so many ranks; chosen: what the user has set, or 0. */
unsigned dt_nccl_init_seconds(unsigned chosen, int size);

/* The parts of dt_nccl_make. Collective, in the context of the first call's memory: connects ranks
 * 0 to size - 1 of NCCL's communicator. NCCL's rank 0 must be rank 0 of c. A rank with rank -1
 * takes no part. */
dt_result_t dt_nccl_connect(struct dt_comm *c, const struct dt_gpu_order *order, int rank,
                            int size);
/* Whether calls must agree on their place among those of other communicators (dt_nccl_agree). */
bool dt_nccl_needs_agreement(const struct dt_comm *c);
/* dt_nccl_agree is collective and comes before the call: it gives the call a place among the calls
 * of all communicators, which the call keeps until dt_launch_end. dt_nccl_await_turn waits for that
 * place, inside the call. */
dt_result_t dt_nccl_agree(struct dt_comm *c, const struct dt_operation *o,
                          struct dt_launch *launch);
dt_result_t dt_nccl_await_turn(struct dt_comm *c, const struct dt_launch *launch);
/* Inside a call: dt_nccl_queue puts the operation, for NCCL's ranks, on the stream. dt_nccl_check
 * returns an error if NCCL has failed since. */
dt_result_t dt_nccl_queue(struct dt_comm *c, const struct dt_operation *o, CUstream stream);
dt_result_t dt_nccl_check(struct dt_comm *c);
/* Gives up NCCL after a failure that has been reported. */
void dt_nccl_give_up(struct dt_comm *c);

#endif
