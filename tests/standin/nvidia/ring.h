#ifndef TESTS_STANDIN_NVIDIA_RING_H
#define TESTS_STANDIN_NVIDIA_RING_H

#include "tests/standin/nvidia/connection.h"
#include "tests/standin/nvidia/function.h"

/* One channel's part of a collective, in the order of NCCL's kernel. Returns false if the
 * communicator was aborted. */
bool standin_run_ring(const struct standin_block *block, struct standin_function function,
                      const struct nccl_collective *work);

#endif
