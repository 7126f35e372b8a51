#ifndef TESTS_STANDIN_NVIDIA_P2P_H
#define TESTS_STANDIN_NVIDIA_P2P_H

#include "tests/standin/nvidia/connection.h"

/* One channel's part of at most NCCL_WORKS sends and receives (struct nccl_p2p). Returns false if
 * the communicator was aborted. */
bool standin_run_p2p(const struct standin_block *block, const void *const works[], int count);

#endif
