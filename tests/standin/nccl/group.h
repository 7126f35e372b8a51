/* Groups: what NCCL does at ncclGroupEnd, for calls outside of a group at their end.
 *
 * Rules ("Group Calls"): jobs (to make, split, finalize, destroy and abort communicators) run side
 * by side, and ncclGroupEnd waits for them; then the operations are launched, all of one
 * communicator as one kernel. With communicators that do not block a thread does that, and
 * ncclGroupEnd returns ncclInProgress. The first error of a call in the group is the group's, and
 * nothing of it is done then. Communicators that block and that do not, do not mix. */
#ifndef TESTS_STANDIN_NCCL_GROUP_H
#define TESTS_STANDIN_NCCL_GROUP_H

#include "tests/standin/nccl/comm.h"

struct standin_job { /* the first member of what malloc has returned */
    struct standin_job *next;
    struct ncclComm *comm;
    ncclResult_t (*run)(struct standin_job *job);
    bool destroys; /* the communicator, which is not there any more then */
    pthread_t thread;
    ncclResult_t result;
};

void standin_group_start(void);
ncclResult_t standin_group_end(void);
/* Returns the result, and notes it as the group's if it is the first error. */
ncclResult_t standin_group_note(ncclResult_t result);
ncclResult_t standin_group_add_job(struct standin_job *job);
/* The communicator has operations that have to be launched. */
ncclResult_t standin_group_add(struct ncclComm *comm);

#endif
