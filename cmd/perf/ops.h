/* The collectives that dtrun-perf measures: how to call each, which rank has which data, and how to
 * compute its bandwidths (nccl-tests, doc/PERFORMANCE.md). One table.
 *
 * A buffer has one or more blocks of "count" elements, or of as many on average in the v forms. The
 * larger of the two buffers is the size that the table shows, as in nccl-tests. */
#ifndef DT_CMD_PERF_OPS_H
#define DT_CMD_PERF_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"

/* Where the input is in an in-place call. */
enum dt_perf_place {
    DT_PERF_SAME,      /* the input is at the beginning of the output */
    DT_PERF_OWN_IN,    /* the input is this rank's block of the output */
    DT_PERF_OWN_OUT,   /* the output is this rank's block of the input */
    DT_PERF_UNCHECKED, /* like OWN_OUT, but the result is not checked, as in nccl-tests */
    DT_PERF_NO_PLACE,  /* there is no in-place call */
};

struct dt_perf_case { /* what is measured */
    dt_comm_t *comm;  /* DT_WORLD, or a copy of it */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
    /* For the v forms: the number of elements in this rank's block for each rank, and in each
     * rank's block for this one. */
    const size_t *gives;
    const size_t *takes;
};

struct dt_perf_source { /* where a block of a result comes from */
    int rank;           /* whose input it is; a reduction combines the inputs of ranks 0 to rank */
    int block;          /* the block of that input */
};

struct dt_perf_layout { /* which rank runs on which host */
    int n;              /* number of ranks */
    int hosts;
    const int *host; /* by rank; hosts are numbered from 0 */
};

struct dt_perf_op {
    const char *name;
    bool reduces;    /* -o applies */
    bool weighs;     /* including DT_ADASUM */
    bool has_root;   /* -r applies */
    bool empty;      /* it moves no data */
    bool root_alone; /* only the root has the result */
    bool many_in;    /* the input (or output) has a block for each rank instead of one */
    bool many_out;
    enum dt_perf_place place;
    /* Of a v form: see dt_perf_block_count; else NULL. */
    size_t (*block_count)(int from, int to, int n, size_t count);
    /* Where a block of the result comes from. */
    struct dt_perf_source (*source)(int me, int n, int root, int block);
    /* Bus bandwidth divided by algorithm bandwidth, for n ranks. */
    double (*bus_factor)(int n);
    /* Bytes that the n ranks of a host together read and write, divided by the size. */
    double (*moved)(int n);
    /* The least number of elements that leave or enter some host. */
    double (*leaves)(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                     size_t count);
    dt_result_t (*run)(const struct dt_perf_case *c, const void *in, void *out, size_t count);
};

/* Returns the number of elements in the block that one of n ranks has for another; they have count
 * on average. */
static inline size_t dt_perf_block_count(const struct dt_perf_op *op, int from, int to, int n,
                                         size_t count)
{
    return op->block_count ? op->block_count(from, to, n, count) : count;
}

/* Returns whether the operation exists for this type. */
bool dt_perf_combines(dt_op_t op, dt_dtype_t dtype);

/* Returns the collective with this name, in any spelling (allreduce, all-reduce and all_reduce_perf
 * are the same), or NULL. */
const struct dt_perf_op *dt_perf_op_find(const char *name);
/* Returns the i-th collective from 0 on, or NULL after the last. */
const struct dt_perf_op *dt_perf_op_at(size_t i);

#endif
