/* Groups: what NCCL does at ncclGroupEnd. A call outside a group is a group of its own.
 *
 * Rules ("Group Calls"): jobs (which make, split, finalize, destroy and abort communicators) run
 * side by side, and ncclGroupEnd waits for them. Then the operations are launched, as one kernel
 * for each communicator. For non-blocking communicators a thread does that, and ncclGroupEnd
 * returns ncclInProgress. The first error of a call in the group becomes the group's error, and
 * none of the group is carried out. A group cannot mix blocking and non-blocking communicators.
 *
 * From NCCL 2.22 on (enqueue.cc, runtimeConn), the launch of a communicator's first collective
 * waits until all members launch it, or until an abort. With a blocking communicator, the caller
 * waits. (NCCL also waits in the first use of an algorithm, and in the first send to a peer.)
 *
 * Up to NCCL 2.26 (group.cc, ncclGroupJobMain), the thread works with thread-local variables of the
 * caller. If the caller ends before the group does, these are gone: here, that ends the process.
 * From 2.27 on (init.cc), the next call on the communicator joins the thread and frees its job, as
 * does ncclCommGetAsyncError. So that, too, must not be called beside another thread's call. */
#ifndef TESTS_STANDIN_NCCL_GROUP_H
#define TESTS_STANDIN_NCCL_GROUP_H

#include "tests/standin/nccl/comm.h"

struct standin_job { /* begins each kind of job, which malloc has allocated */
    struct standin_job *next;
    struct ncclComm *comm;
    ncclResult_t (*run)(struct standin_job *job);
    bool destroys; /* frees the communicator */
    pthread_t thread;
    ncclResult_t result;
};

void standin_group_start(void);
ncclResult_t standin_group_end(void);
/* Returns the result. If it is the group's first error, keeps it as the group's error. */
ncclResult_t standin_group_note(ncclResult_t result);
ncclResult_t standin_group_add_job(struct standin_job *job);
/* Adds a communicator whose operations the group must launch. */
ncclResult_t standin_group_add(struct ncclComm *comm);

#endif
