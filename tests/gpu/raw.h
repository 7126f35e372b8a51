/* NCCL as programs use it that have no libdtrun: what the GPU kit compares with. Failures end the
 * process as those of tests/rank/device.h do. */
#ifndef TESTS_GPU_RAW_H
#define TESTS_GPU_RAW_H

#include <stdbool.h>

#include "runtime/gpu/nvidia/ncclapi.h"
#include "tests/rank/device.h"

struct raw {
    ncclComm_t comm;
    CUstream stream;
    bool blocking; /* else calls wait until NCCL has launched, as those of libdtrun do */
};

const struct dt_ncclapi *raw_api(void);

/* Collective on DT_WORLD, on the current context. */
void raw_open(struct raw *raw, bool blocking);
void raw_all_reduce(const struct raw *raw, void *buf, size_t count);
void raw_wait(const struct raw *raw);
void raw_close(struct raw *raw);

#endif
