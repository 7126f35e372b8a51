/* The faults of the stand-in for NCCL that STANDIN_NCCL_FAULTS can ask for (see faults.h).
 *
 *   id-error      ncclGetUniqueId returns ncclSystemError (RANK is 0)
 *   init-hang     ncclCommInitRank and ncclCommSplit wait until the communicator is aborted
 *   init-error    ncclCommInitRank and ncclCommSplit return ncclSystemError
 *   submit-error  a call returns ncclSystemError, without a launch
 *   submit-hang   a call waits in the driver, before its launch, until the communicator is
 *                 aborted, and then takes a moment more
 *   launch-hang   the thread that launches, NCCL's or the caller's, waits likewise
 *   queue-hang    a call waits for ever, whether or not the communicator is aborted
 *   kernel-hang   a kernel waits until the communicator is aborted, and nothing reports it
 *   remote-error  like kernel-hang, but ncclCommGetAsyncError reports ncclRemoteError
 *   system-error  like kernel-hang, but ncclCommGetAsyncError reports ncclSystemError
 *   abort-hang    ncclCommAbort never returns
 *   destroy-hang  ncclCommDestroy never returns
 *
 * Once the file that STANDIN_NCCL_BROKEN names exists, every communicator reports
 * ncclSystemError. */
#ifndef TESTS_STANDIN_NCCL_INJECT_H
#define TESTS_STANDIN_NCCL_INJECT_H

#include "tests/standin/nccl/comm.h"

ncclResult_t standin_inject_id(void);
ncclResult_t standin_inject_init(struct ncclComm *comm);
ncclResult_t standin_inject_submit(struct ncclComm *comm);
void standin_inject_launch(struct ncclComm *comm);
/* Returns false if the kernel must not run, because it hung until an abort. */
bool standin_inject_kernel(struct ncclComm *comm);
void standin_inject_async(struct ncclComm *comm);
void standin_inject_abort(const struct ncclComm *comm);
void standin_inject_destroy(const struct ncclComm *comm);

#endif
