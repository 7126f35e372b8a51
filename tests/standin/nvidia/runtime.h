/* The functions of the CUDA runtime that NCCL 2.28 calls, on the stand-in for the driver. They
 * replace those of the runtime that is part of NVIDIA's libnccl. */
#ifndef TESTS_STANDIN_NVIDIA_RUNTIME_H
#define TESTS_STANDIN_NVIDIA_RUNTIME_H

/* What is to run instead of the runtime's function `name`; NULL if NCCL does not need it. */
void *standin_runtime_function(const char *name);

#endif
