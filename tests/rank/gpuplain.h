/* Calls on GPU memory whose results are known: the calls of tests/rank/gpurandom.c, with random
 * data and the same calls in plain C. */
#ifndef TESTS_RANK_GPUPLAIN_H
#define TESTS_RANK_GPUPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/rank/device.h"

enum {
    MOST = 8,  /* ranks */
    VIEWS = 2, /* of a communicator */
};

/* ---- random numbers ---- */

uint64_t mix(uint64_t x);
/* Throws the dice: a number below n. */
size_t below(uint64_t *dice, size_t n);
/* Whether a thing happens that does so once in n times. */
bool once_in(uint64_t *dice, size_t n);

/* ---- calls ---- */

enum memory { HOST, MANAGED, DEVICE, MEMORIES };

struct view {
    dt_comm_t *comm;
    CUstream stream;
    bool exists; /* on all ranks of the group */
};

struct group {
    dt_comm_t *comm; /* DT_COMM_NULL on ranks that are in no such communicator */
    int rank, size;
    struct view views[VIEWS];
    bool exists; /* on all ranks of the worker's first group */
};

/* A buffer with guards. `source` holds what a GPU copies into it, and later what it held. */
struct area {
    enum memory memory;
    size_t bytes;
    uint8_t *at, *source;
    uint8_t *wanted; /* in the end */
};

struct call;

struct operation {
    const char *name;
    size_t (*in)(const struct call *c, int rank);  /* elements of the input */
    size_t (*out)(const struct call *c, int rank); /* and of the result */
    void (*want)(struct call *c);                  /* computes the result */
    dt_result_t (*make)(struct call *c, dt_request_t *later);
    bool folds;    /* combines elements */
    bool rooted;   /* has a root, which alone may be in place */
    bool any_size; /* blocks may differ in size, and ranks may then use different memory */
    bool marked;   /* DT_IN_PLACE may stand for the input */
    /* In place, the input is this rank's block of the result's buffer, or the other way round. */
    bool own_in, own_out;
};

struct call {
    const struct operation *operation;
    struct group *group;
    struct view *view; /* or NULL */
    dt_comm_t *comm;   /* the group's, or the view */
    uint64_t key;      /* of the data */
    dt_dtype_t dtype;
    dt_op_t op;
    size_t count;
    bool varies, in_place, beside; /* beside: the result of a reduce-scatter is in its own block */
    unsigned absent;               /* ranks that have joined (dt_join) */
    int root, peer;
    dt_all_reduce_options_t options;
    uint8_t *inputs[MOST], *result; /* in host memory */
    double tolerance;               /* absolute; 0: none */
    struct area areas[2];           /* input and result; in place there is only the second */
    void *in, *out;
    dt_request_t request;
    bool requested, under_way;
};

enum {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    BARRIER,
    COLLECTIVES,
    SEND = COLLECTIVES,
    RECEIVE
};

extern const struct operation operations[];

bool dtype_is_float(dt_dtype_t dtype);
double get_float(const uint8_t *at, size_t i, dt_dtype_t dtype);

/* The size of an element. */
static inline size_t call_size(const struct call *c)
{
    return dt_dtype_size(c->dtype);
}

/* How many elements come before the rank's own block. */
size_t call_own_place(const struct call *c, int rank);

/* Makes the inputs of all ranks and computes the result, in memory of its own. */
void call_compute(struct call *c);
/* Sets how far results may be from exact ones. */
void call_set_tolerance(struct call *c);

#endif
