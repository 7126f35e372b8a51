/* Calls that the program's thread itself hands to NCCL, on the stream on which it enqueues them.
 * The stream is not held, and the GPU gets its work without waiting for another thread.
 *
 * The communicator's thread does the rest of such a call in its turn: it matches the call with
 * those of the other ranks, watches its timeout and its peers, and ends NCCL's communicator if
 * anything goes wrong, so that the stream goes on. To other ranks the call looks like one that the
 * communicator's thread launches.
 *
 * One program thread at a time may use this, beside the communicator's thread. */
#ifndef DT_GPU_DIRECT_H
#define DT_GPU_DIRECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/device/gate.h"
#include "runtime/gpu/nvidia/abi_cuda.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

struct dt_comm;
struct dt_operation;

enum dt_direct_state { DT_DIRECT_LAUNCHING, DT_DIRECT_LAUNCHED, DT_DIRECT_LEFT };

struct dt_direct { /* one call */
    struct dt_direct *next;
    CUevent begun; /* recorded when the stream reaches the call */
    CUevent done;
    _Atomic int state; /* enum dt_direct_state; LAUNCHED: the fields below are set */
    CUresult error;
    ncclResult_t result;
    const char *name; /* of the function that failed */
};

struct dt_directs {             /* one per communicator; all zero at first */
    pthread_mutex_t mutex;      /* held while a call is launched, which may take long */
    pthread_mutex_t free_mutex; /* for the list of free calls; held briefly */
    bool made;
    _Atomic bool open; /* whether calls may be launched */
    struct dt_direct *free;
    CUstream last;        /* that of the newest call */
    CUevent _Atomic done; /* recorded after the newest call; NULL: no call yet */
    CUcontext context;    /* that of all events */
    uint64_t life;        /* the context's life (device/life.h) */
    /* of NCCL's communicator: the communicator's thread clears its own after an abort, even if a
     * thread is still launching */
    ncclComm_t comm;
    int rank;
    int size;
    struct dt_gpu_watched watched;
};

/* Allows calls, since NCCL is connected now. Once the communicator has been stopped, the thread
 * that watches gates (device/gate.h) calls `stuck` as long as any call is not over. */
void dt_direct_open(struct dt_comm *c, void (*stuck)(struct dt_comm *c));
/* Allows no more launches. Does not wait for a thread that is launching right now. */
void dt_direct_shut(struct dt_comm *c);
/* Keeps other threads from launching calls until dt_direct_resume. Returns false if one is
 * launching now; then nothing is to be resumed. */
bool dt_direct_pause(struct dt_comm *c);
void dt_direct_resume(struct dt_comm *c);
/* Whether the GPU has finished all calls. The communicator's thread notices soon afterwards. */
bool dt_direct_all_done(struct dt_comm *c);
/* Frees everything; all calls must be over. */
void dt_direct_close(struct dt_comm *c);

/* Prepares a call on this stream, whose context is current. Returns an error with the function that
 * failed in *function. */
CUresult dt_direct_begin(struct dt_comm *c, CUstream stream, struct dt_direct **call,
                         const char **function);
/* Launches the operation after it has been submitted. The call reports what goes wrong. */
void dt_direct_launch(struct dt_comm *c, const struct dt_operation *o, CUstream stream);
/* The call will not be submitted after all. */
void dt_direct_cancel(struct dt_comm *c, struct dt_direct *call);
/* The communicator's thread is done with the call. */
void dt_direct_end(struct dt_comm *c, struct dt_direct *call);

#endif
