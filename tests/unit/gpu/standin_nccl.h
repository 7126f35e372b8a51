/* Ranks for tests of the stand-in for NCCL: processes that are forked before anything of CUDA runs,
 * each with a device, a communicator of them all and memory. */
#ifndef TESTS_UNIT_STANDIN_NCCL_H
#define TESTS_UNIT_STANDIN_NCCL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/standin/nccl/comm.h"

enum { MAX_RANKS = 4, BUFFER = 4 << 20 };

/* What the ranks of a test share. */
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
    char *host; /* pinned, as large as these */
    ncclComm_t comm;
};

/* In a rank: tells what is not so and ends the rank with 1. */
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

/* Among so many hosts run_ranks deals the ranks out. */
extern int lab_hosts;

/* Runs the body in `size` ranks; each returns the signal or, below 0, the exit status that ended
 * it in ends[], or all have to end with 0 if that is NULL. */
void run_ranks(int size, void (*body)(struct rank *), int *ends);

/* Steps that most bodies have. */
void start_device(struct rank *me, CUdevice device);
void start_comm(struct rank *me); /* with the device that has the rank's number */
void start_both(struct rank *me);
void end_comm(struct rank *me);
void meet(struct rank *me);
void fill(struct rank *me, const void *values, size_t size);
const void *result(struct rank *me, size_t size); /* waits for the stream */
void await_state(struct rank *me, ncclComm_t comm, ncclResult_t state);

#endif
