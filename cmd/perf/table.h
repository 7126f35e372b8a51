/* The output of dtrun-perf: nccl-tests' table with three more columns, or JSON. */
#ifndef DT_CMD_PERF_TABLE_H
#define DT_CMD_PERF_TABLE_H

#include <stdio.h>

#include "cmd/perf/measure.h"

struct dt_perf_row {
    struct dt_perf_case what;
    size_t bytes;
    size_t count;
    struct dt_perf_figures out_of_place;
    struct dt_perf_figures in_place;
    struct dt_perf_figures raw; /* with --raw: of NCCL itself, out of place */
    double bound_us;            /* lower bound of the time of a call; 0: not known */
};

struct dt_perf_table {
    FILE *text; /* NULL: not wanted; likewise json */
    FILE *json;
    const struct dt_perf_op *op;
    const struct dt_perf_args *args;
    int ranks;
    double network; /* Gbit/s that a host's network carries in each direction; 0: not used */
    size_t rows;
    double bus_sum; /* GB/s, summed over all columns of all rows */
    size_t bus_n;   /* number of summands */
    size_t wrong;
};

/* One of these for each rank, by rank. */
struct dt_perf_rank {
    char host[56];
    int64_t pid;
    int64_t node; /* the number of the host */
    char memory[96];
};

void dt_perf_table_begin(struct dt_perf_table *t, const struct dt_perf_rank *ranks);
void dt_perf_table_row(struct dt_perf_table *t, const struct dt_perf_row *row);
void dt_perf_table_end(struct dt_perf_table *t);

#endif
