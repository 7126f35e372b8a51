/* A kernel that keeps a stream busy. */
#ifndef TESTS_GPU_SPIN_H
#define TESTS_GPU_SPIN_H

#include "tests/rank/device.h"

#define SPIN_FOR_EVER UINT64_MAX

/* Queues the kernel. It ends when the gate's word is not 0, or after `ns` nanoseconds. */
void spin(const struct gate *gate, uint64_t ns, CUstream stream);

#endif
