/* Runs NCCL's kernels on the host: rings with the protocol Simple, sends and receives. */
#ifndef TESTS_STANDIN_NVIDIA_KERNEL_H
#define TESTS_STANDIN_NVIDIA_KERNEL_H

#include "tests/standin/standin.h"

/* Enqueues a kernel with these arguments (struct nccl_arguments and what follows it). */
CUresult standin_launch(CUstream stream, const void *arguments, size_t size);

#endif
