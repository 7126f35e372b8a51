/* The collectives that dtrun-perf measures: how each is called, what it should give, and how its
 * bandwidths are counted (nccl-tests, doc/PERFORMANCE.md). */
#ifndef DT_CMD_PERF_OPS_H
#define DT_CMD_PERF_OPS_H

#include <stddef.h>

#include "cmd/perf/args.h"

struct dt_perf_op {
    const char *name;
    bool reduces;                /* -o means something, -r does not; else the other way round */
    double (*bus_factor)(int n); /* bus bandwidth by algorithm bandwidth, for n ranks */
    double (*moved)(int n); /* bytes read and written by all ranks of a host together, by size */
    dt_result_t (*run)(const struct dt_perf_args *a, const void *in, void *out, size_t count);
};

const struct dt_perf_op *dt_perf_op_find(const char *name); /* NULL: there is none */

/* Fills a rank's input with numbers that every type holds and whose results are exact. */
void dt_perf_fill(const struct dt_perf_args *a, void *buf, size_t count, int rank);
/* How many of count elements of out are not what the collective should have given. */
size_t dt_perf_wrong(const struct dt_perf_op *op, const struct dt_perf_args *a, const void *out,
                     size_t count, int n);

#endif
