/* Compares variants of a collective: times them alternately, in communicators that differ only in
 * their thresholds. */
#ifndef DT_CMD_PERF_COMPARE_H
#define DT_CMD_PERF_COMPARE_H

#include "cmd/perf/measure.h"
#include "cmd/perf/thresholds.h"

enum { DT_PERF_SIZES = 16, DT_PERF_VARIANTS = 6 };

struct dt_perf_comparison {
    const struct dt_perf_launch *launch;
    const struct dt_perf_buffers *buffers;
    const char *collective;
    size_t (*block)(const struct dt_perf_launch *l,
                    size_t bytes); /* as in struct dt_perf_crossover */
    dt_comm_t *like;
    const char *before;       /* the threshold lines of all variants */
    const char *const *lines; /* and those of each one */
    size_t n;                 /* 2 to DT_PERF_VARIANTS */
    size_t from, to;          /* at most DT_PERF_SIZES sizes */
    int calls; /* calls of one variant at one size in each turn; 0: as many as take a while */

    double us[DT_PERF_VARIANTS][DT_PERF_SIZES]; /* time of a call */
};

/* Collective. Fills us with the same values on all ranks. */
dt_result_t dt_perf_compare(struct dt_perf_comparison *x);

#endif
