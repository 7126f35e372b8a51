/* Ranks for tests of the stand-in for NCCL: processes that are forked before CUDA is used, each
 * with a device, memory, and a communicator of all ranks. */
#ifndef TESTS_UNIT_GPU_STANDIN_NCCL_H
#define TESTS_UNIT_GPU_STANDIN_NCCL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/standin/nccl/comm.h"

enum { MAX_RANKS = 4, BUFFER = 4 << 20 };

/* Shared by the ranks of a test. */
struct lab {
    ncclUniqueId id;
    pthread_barrier_t barrier;
    _Atomic int number;
    int processes[MAX_RANKS];
};

struct rank {
    struct lab *lab;
    int rank, size;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUdeviceptr from, to;
    char *host; /* pinned, as large as `from` and `to` */
    ncclComm_t comm;
    ncclResult_t reduced; /* by a thread beside */
};

/* In a rank: if the condition does not hold, prints it and ends the rank with status 1. */
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, me->rank, #condition);     \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define IS(expected, call)                                                                         \
    do {                                                                                           \
        int is_ = (int)(call);                                                                     \
                                                                                                   \
        if (is_ != (int)(expected)) {                                                              \
            fprintf(stderr, "%s:%d: rank %d: %s is %d, not %s: %s\n", __FILE__, __LINE__,          \
                    me->rank, #call, is_, #expected, ncclGetLastError(NULL));                      \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define OK(call) IS(0, call)

/* The number of hosts to which run_ranks assigns the ranks in turn. */
extern int lab_hosts;

/* Runs the body in `size` ranks. ends[] gets each rank's signal or, negated, its exit status. If
 * ends is NULL, all ranks must exit with status 0. */
void run_ranks(int size, void (*body)(struct rank *), int *ends);

/* Steps that most bodies have. */
void start_device(struct rank *me, CUdevice device);
void start_comm(struct rank *me); /* on the device with the rank's number */
void start_both(struct rank *me);
void end_comm(struct rank *me);
void meet(struct rank *me);
void fill(struct rank *me, const void *values, size_t size);
const void *result(struct rank *me, size_t size); /* waits for the stream */
void await_state(struct rank *me, ncclComm_t comm, ncclResult_t state);

#endif
