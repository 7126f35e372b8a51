/* Kernels on streams: all operations that a communicator has been given in a group are one.
 *
 * Rules ("Using multiple streams"): the kernel waits for all streams that its operations name, and
 * those wait for it; kernels of one communicator run one after the other, on whatever streams. */
#ifndef TESTS_STANDIN_NCCL_LAUNCH_H
#define TESTS_STANDIN_NCCL_LAUNCH_H

#include "tests/standin/nccl/operation.h"

ncclResult_t standin_launch(struct ncclComm *comm);
ncclResult_t standin_launch_alone(struct ncclComm *comm, const struct standin_operation *operation);
/* Forgets the operations. */
void standin_discard(struct ncclComm *comm);

#endif
