/* NCCL as programs without libdtrun use it, which the GPU kit compares with. Failures end the
 * process like those of tests/rank/device.h. */
#ifndef TESTS_GPU_RAW_H
#define TESTS_GPU_RAW_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/ncclapi.h"
#include "tests/rank/device.h"

struct raw {
    ncclComm_t comm;
    CUstream stream;
    bool blocking; /* if not, calls wait until NCCL has launched, like those of libdtrun */
};

const struct dt_ncclapi *raw_api(void);

/* Collective over DT_WORLD. Uses the current context. */
void raw_open(struct raw *raw, bool blocking);
void raw_all_reduce(const struct raw *raw, void *buf, size_t count);
void raw_wait(const struct raw *raw);
void raw_close(struct raw *raw);

#endif
