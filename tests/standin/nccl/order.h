/* The order in which the communicators of one device launch their collectives.
 *
 * Rule ("Using multiple NCCL communicators concurrently"): the order must be the same on all ranks
 * that two communicators have in common. Otherwise their kernels may wait for each other for
 * ever. */
#ifndef TESTS_STANDIN_NCCL_ORDER_H
#define TESTS_STANDIN_NCCL_ORDER_H

#include "tests/standin/nccl/kernel.h"

/* A communicator's launches count from standin_order_add to standin_order_remove. */
void standin_order_add(struct ncclComm *comm);
void standin_order_remove(struct ncclComm *comm);

/* If the kernel has a collective, counts it and notes in the plan what was launched before. */
void standin_order_launch(struct standin_kernel_plan *plan);

/* Reports, once for each communicator, that another member has launched the kernel which all now
 * run after a different number of kernels of some other communicator. */
void standin_order_compare(struct ncclComm *comm);

/* A communicator of this process on that device whose last kernel has not ended, or NULL. */
const struct ncclComm *standin_order_busy(CUdevice device);

#endif
