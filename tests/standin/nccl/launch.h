/* Kernels on streams: all operations of a communicator in one group become one kernel.
 *
 * Rules ("Using multiple streams"): the kernel waits for all streams that its operations name, and
 * they wait for it. Kernels of one communicator run one after the other, whichever streams they are
 * on. */
#ifndef TESTS_STANDIN_NCCL_LAUNCH_H
#define TESTS_STANDIN_NCCL_LAUNCH_H

#include "tests/standin/nccl/operation.h"

ncclResult_t standin_launch(struct ncclComm *comm);
ncclResult_t standin_launch_alone(struct ncclComm *comm, const struct standin_operation *operation);
/* Drops the operations without launching them. */
void standin_discard(struct ncclComm *comm);

#endif
