/* Ways of a collective, timed by turns in communicators that differ by their thresholds alone. */
#ifndef DT_CMD_PERF_COMPARE_H
#define DT_CMD_PERF_COMPARE_H

#include "cmd/perf/measure.h"
#include "cmd/perf/thresholds.h"

enum { DT_PERF_SIZES = 16, DT_PERF_WAYS = 6 };

struct dt_perf_comparison {
    const struct dt_perf_launch *launch;
    const struct dt_perf_buffers *buffers;
    const char *collective;
    size_t (*block)(const struct dt_perf_launch *l, size_t bytes); /* as of a crossover */
    dt_comm_t *like;
    const char *before;       /* lines of all ways, ... */
    const char *const *lines; /* ... and those of each */
    size_t n;                 /* 2 to DT_PERF_WAYS */
    size_t from, to;          /* DT_PERF_SIZES of them at most */
    int calls;                /* of a way at a size in each turn; 0: as many as take a while */

    double us[DT_PERF_WAYS][DT_PERF_SIZES]; /* what a call takes */
};

/* Collective. Fills us, alike on all ranks. */
dt_result_t dt_perf_compare(struct dt_perf_comparison *x);

#endif
