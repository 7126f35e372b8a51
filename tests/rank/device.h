/* Shared by ranks of tests with a GPU. On an error they print a line to standard output and exit
 * with 1 for a failed call of libdtrun, 3 for a lost peer, 4 for CUDA, and 5 without a driver. */
#ifndef TESTS_RANK_DEVICE_H
#define TESTS_RANK_DEVICE_H

#include <stdbool.h>

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/cuda.h"

/* Checks the result of a call of libdtrun. */
void need(dt_result_t result);

void drive(CUresult result, const char *what);

#define DRIVE(call) drive(dt_cuda()->call, #call)

/* Loads the driver. */
void device_load(void);
/* Loads the driver and makes the primary context of this device current. */
void device_use(int ordinal);

/* Joins the job, makes the primary context of device 0 current, and ignores SIGTERM. */
void device_join(void);

/* What a rank may do, by the name in its argument. */
struct doing {
    const char *name;
    void (*run)(void);
};

/* Does what the argument names. Returns false if that is none of the doings. */
bool device_do(const struct doing *doings, size_t n, int argc, char **argv);

CUdeviceptr address(const void *ptr);
/* Device memory in the current context. */
void *device_new(size_t bytes);

/* A word in host memory that the GPU waits for on a stream. Any thread may open it. */
struct gate {
    _Atomic uint32_t *word;
    CUdeviceptr address;
};

void gate_make(struct gate *gate);
/* Holds all work that is queued on the stream from now on until the gate's word is 1. */
void gate_shut(struct gate *gate, CUstream stream);
void gate_open(struct gate *gate);

#endif
