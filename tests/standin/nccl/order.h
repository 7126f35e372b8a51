/* The order in which the communicators of one device launch their collectives.
 *
 * Rule ("Using multiple NCCL communicators concurrently"): it has to be the same on all ranks that
 * two communicators have in common, or their kernels may wait for each other for ever. */
#ifndef TESTS_STANDIN_NCCL_ORDER_H
#define TESTS_STANDIN_NCCL_ORDER_H

#include "tests/standin/nccl/kernel.h"

/* Between these two a communicator's launches count. */
void standin_order_add(struct ncclComm *comm);
void standin_order_remove(struct ncclComm *comm);

/* Counts the kernel, if it has a collective, and notes in the plan what came before. */
void standin_order_launch(struct standin_kernel_plan *plan);

/* Reports, once for each communicator, if another member has launched what all now run after a
 * different number of kernels of some other communicator. */
void standin_order_compare(struct ncclComm *comm);

#endif
