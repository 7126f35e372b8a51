/* How a call is cut into steps when ranks share the memory of GPUs. In each step either all ranks
 * fold equally many elements, or the elements of one rank are spread. The result goes to one rank
 * or to all. Pure. */
#ifndef DT_GPU_FOLD_STEPS_H
#define DT_GPU_FOLD_STEPS_H

#include <stdbool.h>
#include <stddef.h>

struct dt_operation;

/* Whether the operation can be cut into such steps: all-reduce, reduce, reduce-scatter, broadcast
 * and all-gather can, except with Adasum or a wire format. */
bool dt_gpu_steps_serve(const struct dt_operation *o);

struct dt_gpu_steps {
    size_t each; /* the most elements in a step */
    size_t n;
};

/* For an operation that can be cut, `size` ranks, and steps of at most this many bytes. */
struct dt_gpu_steps dt_gpu_steps_of(const struct dt_operation *o, int size, size_t most_bytes);
/* How many bytes the longest step would have without a limit. */
size_t dt_gpu_steps_longest(const struct dt_operation *o);

enum { DT_GPU_ALL_RANKS = -1 };

struct dt_gpu_step {
    size_t count; /* elements */
    bool folds;   /* folds the input of all ranks; if false, spreads that of rank `from` */
    int from;
    int to;         /* the rank that takes the result, or DT_GPU_ALL_RANKS */
    const void *in; /* where this rank's input begins, if it gives any */
    void *out;      /* where the result goes, if it takes */
};

/* Returns step number i. */
struct dt_gpu_step dt_gpu_steps_at(const struct dt_gpu_steps *s, const struct dt_operation *o,
                                   size_t i);

#endif
