/* The thresholds that --tune measures: in which launches, and with which calls. net_streams is not
 * a crossover; tune.c measures it. Pure. */
#ifndef DT_CMD_PERF_THRESHOLDS_H
#define DT_CMD_PERF_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>

/* The properties of a job that decide what can be measured. */
struct dt_perf_launch {
    int hosts;
    int ranks;    /* of rank 0's host */
    int width;    /* how many ranks of every host talk to other hosts for large reductions */
    bool crowded; /* ranks share CPUs */
};

/* What a value of a threshold depends on. */
enum dt_perf_number { DT_PERF_OF_RANKS, DT_PERF_OF_HOSTS };

/* A size at which another algorithm becomes faster. The lines force one of the two, whatever the
 * size. */
struct dt_perf_crossover {
    const char *name;
    size_t offset; /* of its value in struct dt_tuning */
    enum dt_perf_number number;
    bool (*applies)(const struct dt_perf_launch *l);
    const char *collective;
    /* Returns how large a rank's block (ops.h) must be for the given number of bytes to be compared
     * with the threshold. NULL: the same number. */
    size_t (*block)(const struct dt_perf_launch *l, size_t bytes);
    size_t from, to;    /* range of sizes, doubled each time */
    bool first_of_high; /* the value is the first size of the second algorithm, not the last of the
                           first */
    const char *low, *high;
};

enum { DT_PERF_TUNE_BYTES = 64 * 1024 * 1024 }; /* of each buffer of a rank */

/* Returns the i-th crossover from 0 on, or NULL after the last. Measured in this order: each uses
 * the thresholds chosen before it. */
const struct dt_perf_crossover *dt_perf_crossover_at(size_t i);

#endif
