/* NCCL's error messages. */
#ifndef TESTS_STANDIN_NCCL_ERRORS_H
#define TESTS_STANDIN_NCCL_ERRORS_H

#include "tests/standin/standin.h"

#include "runtime/gpu/nvidia/abi_nccl.h"

/* Keeps the message for ncclGetLastError, and returns the result. */
ncclResult_t standin_warn(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports a mistake of the program under test, in the file that STANDIN_LOG names or on stderr. */
void standin_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns ncclUnhandledCudaError and keeps a message, unless the result is CUDA_SUCCESS. */
ncclResult_t standin_cuda(CUresult result);

#endif
