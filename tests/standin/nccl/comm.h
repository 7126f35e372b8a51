/* A communicator, and what may be done with it by whom and when.
 *
 * Rules (NCCL User Guide, "Thread Safety", "Fault Tolerance"): a communicator is used by one thread
 * at a time, but for ncclCommGetAsyncError and ncclCommAbort; until the previous operation of one
 * that does not block is done, nothing else can be done with it; an asynchronous error is the
 * result of every later call. */
#ifndef TESTS_STANDIN_NCCL_COMM_H
#define TESTS_STANDIN_NCCL_COMM_H

#include <pthread.h>
#include <stdbool.h>

#include "tests/standin/nccl/shared.h"
#include "tests/standin/standin.h"

DT_NCCL_FUNCTIONS(STANDIN_DECLARE)

enum { STANDIN_USER_OPS = 64 };

struct standin_operation;

/* Made by ncclRedOpCreatePreMulSum. */
struct standin_user_op {
    bool used;
    ncclDataType_t type;
    CUdeviceptr device; /* where the scalar is read when the collective runs; 0: it is `scalar` */
    char scalar[8];
};

struct ncclComm {
    _Atomic int references; /* the program's, and one of each kernel */
    _Atomic int async;      /* the first asynchronous error */
    _Atomic bool in_progress, aborted;
    bool blocking, finalized, destroying;
    int rank, size;
    struct ncclComm *parent; /* while it is split off that one */

    struct standin_place place;
    struct standin_shared *shared; /* NULL until it has joined */
    struct standin_link *link;     /* NULL on the founder's host */
    struct standin_member *own;
    uint64_t met[STANDIN_REASONS];

    CUdevice device;
    CUcontext context;  /* the device's primary one */
    unsigned long life; /* of it, in which memory and event were made */
    CUdeviceptr memory; /* freed at the end, which waits for all work of the device */
    CUevent launched;   /* the latest kernel */
    uint64_t collectives;
    struct ncclComm *next; /* of this process: order.c */
    bool reported;

    pthread_t user; /* the thread inside a call, or in a group with this communicator */
    const char *call;
    int depth;

    struct standin_operation *first, **end; /* of the group that is open */
    struct ncclComm *next_in_group;
    bool in_group;

    struct standin_user_op user_ops[STANDIN_USER_OPS];
    int first_user_op;

    _Atomic int splits_done;
    int splits;
};

struct ncclComm *standin_new_comm(void);
void standin_keep(struct ncclComm *comm);
void standin_drop(struct ncclComm *comm);

/* Aborts the program if another thread is between the two with this communicator. */
void standin_enter(struct ncclComm *comm, const char *call);
void standin_leave(struct ncclComm *comm);
/* Aborts the program if a thread is between the two: this call is about to free the communicator.
 */
void standin_check_unused(struct ncclComm *comm, const char *call);

/* May an operation begin? */
ncclResult_t standin_usable(struct ncclComm *comm, const char *call);

/* Waits until all members have come as often as this one: ncclInternalError after an abort,
 * ncclRemoteError if one of them has failed or ended. A kernel notices only the end of members on
 * other hosts, tells that asynchronously and goes on waiting. */
ncclResult_t standin_meet(struct ncclComm *comm, enum standin_reason reason);

/* For loops that wait: sleeps until something has changed; false after an abort. */
bool standin_pause(struct ncclComm *comm, uint32_t seen);
void standin_hang(struct ncclComm *comm); /* until an abort */
bool standin_is_aborted(const struct ncclComm *comm);
/* While kernels wait: notes an asynchronous error if a member on another host has ended. */
void standin_look_for_lost(struct ncclComm *comm);
void standin_set_async(struct ncclComm *comm, ncclResult_t error);

#endif
