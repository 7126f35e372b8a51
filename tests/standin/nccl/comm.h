/* A communicator, and which calls are allowed on it in which thread and when.
 *
 * Rules (NCCL User Guide, "Thread Safety", "Fault Tolerance"): only one thread at a time uses a
 * communicator, except for ncclCommGetAsyncError and ncclCommAbort. A non-blocking communicator
 * accepts no call until its previous operation is done. After an asynchronous error every later
 * call returns it. */
#ifndef TESTS_STANDIN_NCCL_COMM_H
#define TESTS_STANDIN_NCCL_COMM_H

#include <pthread.h>
#include <stdbool.h>

#include "tests/standin/nccl/shared.h"
#include "tests/standin/standin.h"

DT_NCCL_FUNCTIONS(STANDIN_DECLARE)
DT_NCCL_NEWER_FUNCTIONS(STANDIN_DECLARE)

enum { STANDIN_USER_OPS = 64 };

struct standin_operation;

/* Made by ncclRedOpCreatePreMulSum. */
struct standin_user_op {
    bool used;
    ncclDataType_t type;
    CUdeviceptr device; /* the collective reads the scalar here; 0: it is `scalar` */
    char scalar[8];
};

struct ncclComm {
    _Atomic int references; /* one of the program, one of each kernel */
    _Atomic int async;      /* the first asynchronous error */
    _Atomic bool in_progress, aborted;
    bool blocking, finalized, destroying;
    bool connected, sends; /* for collectives, and for sends and receives */
    int rank, size;
    struct ncclComm *parent; /* the communicator that it is being split from */

    struct standin_place place;
    struct standin_shared *shared; /* NULL until it has joined */
    struct standin_link *link;     /* NULL on the founder's host */
    struct standin_member *own;
    uint64_t met[STANDIN_REASONS];

    CUdevice device;
    CUcontext context;   /* the device's primary context */
    unsigned long life;  /* the context's life in which memory and event were made */
    CUdeviceptr memory;  /* freed at the end, which waits for all work of the device */
    CUevent launched;    /* recorded after the latest kernel */
    _Atomic int running; /* kernels */
    uint64_t collectives;
    struct ncclComm *next; /* in the list of this process (order.c) */
    bool reported;

    pthread_t user; /* the thread inside a call, or in a group with this communicator */
    const char *call;
    int depth;

    struct standin_operation *first, **end; /* in the open group */
    struct ncclComm *next_in_group;
    bool in_group;

    struct standin_user_op user_ops[STANDIN_USER_OPS];
    int first_user_op;

    _Atomic int splits_done;
    int splits;
};

/* The first version whose calls that do not block have jobs of their own, which the next call on
 * the communicator joins and frees. */
enum { STANDIN_OWNS_ITS_JOBS = 22700 };

struct ncclComm *standin_new_comm(void);
void standin_keep(struct ncclComm *comm);
void standin_drop(struct ncclComm *comm);

/* Aborts the program if another thread is between standin_enter and standin_leave of this
 * communicator. */
void standin_enter(struct ncclComm *comm, const char *call);
void standin_leave(struct ncclComm *comm);
/* Aborts the program if a thread is between the two, since this call is about to free the
 * communicator. */
void standin_check_unused(struct ncclComm *comm, const char *call);

/* Whether an operation may begin. */
ncclResult_t standin_usable(struct ncclComm *comm, const char *call);

/* Waits until all members have come as often as this one. Returns ncclInternalError after an abort,
 * and ncclRemoteError if a member has failed or ended. A kernel notices only the end of members on
 * other hosts: it sets the asynchronous error and goes on waiting. */
ncclResult_t standin_meet(struct ncclComm *comm, enum standin_reason reason);

/* For loops that wait: sleeps until something changes. Returns false after an abort. */
bool standin_pause(struct ncclComm *comm, uint32_t seen);
void standin_hang(struct ncclComm *comm); /* until an abort */
bool standin_is_aborted(const struct ncclComm *comm);
/* For waiting kernels: sets the asynchronous error if a member on another host has ended. */
void standin_look_for_lost(struct ncclComm *comm);
void standin_set_async(struct ncclComm *comm, ncclResult_t error);

#endif
