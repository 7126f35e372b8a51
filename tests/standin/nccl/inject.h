/* Faults that the environment asks for: STANDIN_NCCL_FAULTS lists FAULT:RANK:N, separated by
 * commas. The fault happens to that rank of a communicator in the N-th of such calls that its
 * process makes (the first without N, every one with N 0).
 *
 *   init-hang     ncclCommInitRank and ncclCommSplit wait until the communicator is aborted
 *   init-error    they return ncclSystemError
 *   submit-hang   a call waits in the driver, before it is launched, until the communicator is
 *                 aborted, and then takes a moment more
 *   launch-hang   the thread that launches for a communicator that does not block waits so
 *   kernel-hang   a kernel waits until the communicator is aborted, and nobody is told
 *   remote-error  so, and ncclCommGetAsyncError says ncclRemoteError
 *   system-error  so, and ncclCommGetAsyncError says ncclSystemError
 *   abort-hang    ncclCommAbort never returns
 *   destroy-hang  nor does ncclCommDestroy
 *
 * submit-hang and launch-hang make the file that STANDIN_NCCL_HANGS names when they begin.
 * Once the file that STANDIN_NCCL_BROKEN names is there, every communicator has ncclSystemError. */
#ifndef TESTS_STANDIN_NCCL_INJECT_H
#define TESTS_STANDIN_NCCL_INJECT_H

#include "tests/standin/nccl/comm.h"

ncclResult_t standin_inject_init(struct ncclComm *comm);
void standin_inject_submit(struct ncclComm *comm);
void standin_inject_launch(struct ncclComm *comm);
/* Returns false if the kernel is not to run: it has hung until an abort. */
bool standin_inject_kernel(struct ncclComm *comm);
void standin_inject_async(struct ncclComm *comm);
void standin_inject_abort(const struct ncclComm *comm);
void standin_inject_destroy(const struct ncclComm *comm);

#endif
