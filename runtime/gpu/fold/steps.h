/* Into which steps a call is cut that goes by the memory that ranks of one GPU share. In each step
 * all ranks fold as many elements, or one rank's are spread, and one rank or all of them take the
 * result. Pure. */
#ifndef DT_GPU_FOLD_STEPS_H
#define DT_GPU_FOLD_STEPS_H

#include <stdbool.h>
#include <stddef.h>

struct dt_operation;

/* Whether its kind and what it asks for can be made so: all-reduce, reduce, reduce-scatter,
 * broadcast and all-gather, without Adasum and wire formats. */
bool dt_gpu_steps_serve(const struct dt_operation *o);

struct dt_gpu_steps {
    size_t each; /* elements of a step, at most */
    size_t n;
};

/* Of an operation that they serve, for so many ranks, in steps of so many bytes at most. */
struct dt_gpu_steps dt_gpu_steps_of(const struct dt_operation *o, int size, size_t most_bytes);
/* Bytes of the longest step, were there no limit. */
size_t dt_gpu_steps_longest(const struct dt_operation *o);

enum { DT_GPU_ALL_RANKS = -1 };

struct dt_gpu_step {
    size_t count; /* elements */
    bool folds;   /* what all ranks give; else spreads what rank "from" does */
    int from;
    int to;         /* who takes the result: a rank, or DT_GPU_ALL_RANKS */
    const void *in; /* where this rank's begin, if it gives */
    void *out;      /* where the result goes, if it takes */
};

/* The i-th. */
struct dt_gpu_step dt_gpu_steps_at(const struct dt_gpu_steps *s, const struct dt_operation *o,
                                   size_t i);

#endif
