/* Calls that the program's thread hands to NCCL itself, on the stream on which it enqueues them.
 * The stream is not held, and no other thread has to run before the GPU gets its work.
 *
 * The communicator's thread makes the rest of such a call in its turn: it matches the call with
 * those of the other ranks, watches over its limit and its peers, and ends NCCL's communicator when
 * anything goes wrong, which lets the stream go on. Other ranks see no difference to a call that
 * the communicator's thread launches.
 *
 * It is for one thread at a time, and for the communicator's. */
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

struct dt_direct { /* a call */
    struct dt_direct *next;
    CUevent begun; /* when the stream has come to it */
    CUevent done;
    _Atomic int state; /* enum dt_direct_state; what follows is set before it is launched */
    CUresult error;
    ncclResult_t result;
    const char *name; /* of the function that failed */
};

struct dt_directs {             /* of a communicator; all zero at first */
    pthread_mutex_t mutex;      /* held while a call is launched, which may take long */
    pthread_mutex_t free_mutex; /* of the list of free ones, for a moment */
    bool made;
    _Atomic bool open; /* calls may be launched */
    struct dt_direct *free;
    CUstream last;        /* of the newest call, */
    CUevent _Atomic done; /* and when it is done; NULL: there was none */
    CUcontext context;    /* of all events, */
    uint64_t life;        /* and its life (device/life.h) */
    struct dt_gpu_watched watched;
};

/* NCCL is connected, and calls may be launched. stuck: the thread that watches gates
 * (device/gate.h) calls this when the communicator has been stopped and its own thread does not end
 * it. */
void dt_direct_open(struct dt_comm *c, void (*stuck)(struct dt_comm *c));
/* Launches no more. A thread that launches one right now is not waited for. */
void dt_direct_shut(struct dt_comm *c);
/* Whether the GPU has finished all calls. The communicator's thread then notices soon. */
bool dt_direct_are_done(struct dt_comm *c);
/* Frees everything; all calls must be over. */
void dt_direct_close(struct dt_comm *c);

/* Prepares a call on this stream, whose context is current. */
CUresult dt_direct_begin(struct dt_comm *c, CUstream stream, struct dt_direct **call);
/* Launches the operation after it has been handed in. The call reports what goes wrong. */
void dt_direct_launch(struct dt_comm *c, const struct dt_operation *o, CUstream stream);
/* The call is not handed in after all. */
void dt_direct_cancel(struct dt_comm *c, struct dt_direct *call);
/* The communicator's thread has made the call. */
void dt_direct_end(struct dt_comm *c, struct dt_direct *call);

#endif
