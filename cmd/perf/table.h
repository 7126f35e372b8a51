/* What dtrun-perf prints: nccl-tests' table, with three columns more, or JSON. */
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
    struct dt_perf_figures raw; /* of NCCL itself, out of place, where that is asked for */
    double bound_us;            /* no call can take less; 0: not known */
};

struct dt_perf_table {
    FILE *text; /* NULL: not wanted, likewise */
    FILE *json;
    const struct dt_perf_op *op;
    const struct dt_perf_args *args;
    int ranks;
    double network; /* Gbit/s that a host's carries each way; 0: there is none in between */
    size_t rows;
    double bus_sum; /* GB/s, of all columns of all rows */
    size_t bus_n;   /* and how many they are */
    size_t wrong;
};

/* host, pid: of rank i, i of them. */
struct dt_perf_rank {
    char host[56];
    int64_t pid;
    int64_t node; /* the host's number */
    char memory[96];
};

void dt_perf_table_begin(struct dt_perf_table *t, const struct dt_perf_rank *ranks);
void dt_perf_table_row(struct dt_perf_table *t, const struct dt_perf_row *row);
void dt_perf_table_end(struct dt_perf_table *t);

#endif
