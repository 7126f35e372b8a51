/* The part of the CUDA runtime that concerns its last error, on the stand-in for the driver.
 *
 * Rules ("Error Handling" of the runtime API): each thread has a last error. cudaGetLastError
 * returns it and resets it, cudaPeekAtLastError only returns it. A call that succeeds leaves it
 * as it is. Errors of the driver and the runtime have the same numbers. cudaErrorNotReady counts,
 * too: programs that poll an event reset it afterwards. */
#ifndef TESTS_STANDIN_CUDART_H
#define TESTS_STANDIN_CUDART_H

#include "tests/standin/standin.h"

STANDIN_API CUresult cudaEventQuery(CUevent event);
STANDIN_API CUresult cudaStreamQuery(CUstream stream);
STANDIN_API CUresult cudaPeekAtLastError(void);
STANDIN_API CUresult cudaGetLastError(void);

#endif
