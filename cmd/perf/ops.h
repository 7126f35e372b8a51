/* The collectives that dtrun-perf measures: how each is called, who has what of it, and how its
 * bandwidths are counted (nccl-tests, doc/PERFORMANCE.md). One table.
 *
 * Buffers are one or more blocks, of "count" elements, or in the v forms of so many in the mean.
 * The larger of the two buffers is the size that the table shows, as nccl-tests counts. */
#ifndef DT_CMD_PERF_OPS_H
#define DT_CMD_PERF_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"

/* Where the input is when it is in place. */
enum dt_perf_place {
    DT_PERF_SAME,     /* and the result: at the beginning of the output */
    DT_PERF_OWN_IN,   /* the input is this rank's block of the output */
    DT_PERF_OWN_OUT,  /* the output is this rank's block of the input */
    DT_PERF_UNSEEN,   /* the same, but what comes of it is not looked at, nor is it by nccl-tests */
    DT_PERF_NO_PLACE, /* there is no such call */
};

struct dt_perf_case { /* what is measured */
    dt_comm_t *comm;  /* DT_WORLD, or one like it */
    dt_dtype_t dtype;
    dt_op_t op;
    int root;
    const size_t *gives; /* the elements of this rank's blocks for each rank, */
    const size_t *takes; /* and of each rank's block for this one; for the v forms alone */
};

struct dt_perf_source { /* of a block of a result */
    int rank;           /* whose input it comes from; not of those that reduce */
    int block;          /* of that input */
};

struct dt_perf_layout { /* which rank is on which host */
    int n;              /* ranks */
    int hosts;
    const int *host; /* of each rank, from 0 */
};

struct dt_perf_op {
    const char *name;
    bool reduces;    /* -o means something */
    bool weighs;     /* DT_ADASUM, too */
    bool has_root;   /* -r does */
    bool empty;      /* it moves no data */
    bool root_alone; /* has the result */
    bool many_in;    /* the input has a block for each rank, not one; likewise the output */
    bool many_out;
    enum dt_perf_place place;
    size_t (*part)(int from, int to, int n, size_t count); /* of a v form; see dt_perf_part */
    struct dt_perf_source (*source)(int me, int n, int root, int block); /* of the result */
    double (*bus_factor)(int n); /* bus bandwidth by algorithm bandwidth, for n ranks */
    double (*moved)(int n); /* bytes read and written by all ranks of a host together, by size */
    /* Elements that leave or enter some host at least. */
    double (*leaves)(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                     size_t count);
    dt_result_t (*run)(const struct dt_perf_case *c, const void *in, void *out, size_t count);
};

/* The elements of the block that one of n ranks has for another, where they are count in the mean.
 */
static inline size_t dt_perf_part(const struct dt_perf_op *op, int from, int to, int n,
                                  size_t count)
{
    return op->part ? op->part(from, to, n, count) : count;
}

/* Whether elements of a type are combined so. */
bool dt_perf_combines(dt_op_t op, dt_dtype_t dtype);

/* By its name, however it is written: allreduce, all-reduce and all_reduce_perf are one. NULL:
 * none.
 */
const struct dt_perf_op *dt_perf_op_find(const char *name);
/* By number, from 0; NULL after the last. */
const struct dt_perf_op *dt_perf_op_at(size_t i);

#endif
