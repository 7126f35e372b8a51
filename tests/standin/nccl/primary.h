#ifndef TESTS_STANDIN_NCCL_PRIMARY_H
#define TESTS_STANDIN_NCCL_PRIMARY_H

#include "tests/standin/standin.h"

/* Makes the device's primary context that of the calling thread. It is retained once, and never
 * released. */
CUresult standin_use_primary(CUdevice device);

#endif
