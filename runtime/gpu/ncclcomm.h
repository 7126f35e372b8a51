/* The NCCL communicator that serves one communicator of libdtrun: its state, its scratch memory,
 * and its end, when the other one is freed or has failed. ncclinit.h makes it. Its ranks are all
 * ranks if each has a GPU of its own, else the leaders of ranks that share GPUs (shared.h). */
#ifndef DT_GPU_NCCLCOMM_H
#define DT_GPU_NCCLCOMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

struct dt_comm;
struct dt_errand;
struct dt_gpu_order;
struct dt_ncclguard;

enum { DT_NCCLCOMM_KEPT = 64 };

struct dt_ncclcomm { /* one per communicator; all zero at first */
    ncclComm_t comm;
    struct dt_ncclguard *guard; /* guards its use; NULL before it is connected */
    int rank;                   /* this rank's number in it */
    int size;
    CUdevice device;
    CUcontext context;
    uint64_t life; /* the context's life (device/life.h) */
    CUstream stream;
    CUevent begun, done;      /* of the current call */
    CUdeviceptr scratch;      /* for the current call, allocated in stream order; 0: none */
    _Atomic int end;          /* enum in ncclcomm.c: whether a thread ends the communicator */
    struct dt_errand *ending; /* ends it; NULL: no thread could be started */
    /* without stream-ordered memory: scratch memory by the logarithm of its size; 0: none yet */
    CUdeviceptr kept[DT_NCCLCOMM_KEPT];
    struct dt_gpu_watched watched; /* for the communicator's thread inside a call that blocks */
    /* since when a thread that should leave NCCL's functions has been inside one; 0: none */
    uint64_t inside_ns;
};

/* Prepares a communicator that NCCL is about to make in this context, which is current. Returns
 * false if memory or threads run out. */
bool dt_ncclcomm_begin(struct dt_comm *c, const struct dt_gpu_order *order, int rank, int size);
/* What NCCL says of the communicator: ncclInProgress while one of its own threads still launches a
 * call; ncclInternalError once its end has begun. Also ncclInProgress, without asking NCCL, if
 * calls do not block and the program's thread is launching one (direct.h), which then asks by
 * itself. */
ncclResult_t dt_ncclcomm_state(struct dt_comm *c);
/* Memory for the current call, in the order of its stream. */
CUresult dt_ncclcomm_alloc_scratch(struct dt_ncclcomm *n, size_t bytes, CUdeviceptr *scratch);
void dt_ncclcomm_free_scratch(struct dt_ncclcomm *n);

/* Begins the abort in another thread, once c has been stopped. Called again and again while a
 * thread waits in the driver or inside NCCL. */
void dt_ncclcomm_end_stuck(struct dt_comm *c);
/* Aborts NCCL's communicator after a failure that has been reported. */
void dt_ncclcomm_abort(struct dt_comm *c);
/* Aborts NCCL's communicator, if there is one, so that c can have another. */
void dt_ncclcomm_discard(struct dt_comm *c);
/* Destroys NCCL's communicator, or aborts it if c has failed. */
void dt_ncclcomm_close(struct dt_comm *c);

#endif
