/* What a kernel does: first its collectives in order, then its sends and receives side by side. */
#ifndef TESTS_STANDIN_NCCL_KERNEL_H
#define TESTS_STANDIN_NCCL_KERNEL_H

#include "tests/standin/nccl/operation.h"

struct standin_kernel_plan {
    struct ncclComm *comm;
    struct standin_before before[STANDIN_OTHERS]; /* launched before this kernel */
    int before_count;
    size_t count;
    struct standin_operation operations[];
};

void standin_run_kernel(const struct standin_kernel_plan *plan);

/* kernel.c: where the kernel touches a buffer. Raises a fault of the device and returns NULL if it
 * may not. */
char *standin_touch(struct ncclComm *comm, CUdeviceptr ptr, size_t size);

/* collective.c and p2p.c: return false if the kernel ends early, after an abort or a fault. */
bool standin_run_collective(const struct standin_kernel_plan *plan,
                            const struct standin_operation *operation);
bool standin_run_p2p(const struct standin_kernel_plan *plan);

#endif
