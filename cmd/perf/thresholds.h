/* Which thresholds --tune measures: in which launches, and by which calls. net_streams is no
 * crossover, and is measured in tune.c. Pure. */
#ifndef DT_CMD_PERF_THRESHOLDS_H
#define DT_CMD_PERF_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job, as far as it decides what can be measured. */
struct dt_perf_launch {
    int hosts;
    int ranks;    /* of rank 0's host */
    int width;    /* how many ranks of every host talk to other hosts where much is folded */
    bool crowded; /* ranks share CPUs */
};

/* For which a value holds. */
enum dt_perf_number { DT_PERF_OF_RANKS, DT_PERF_OF_HOSTS };

/* A size at which one way gives place to another. The lines force either, whatever the size. */
struct dt_perf_crossover {
    const char *name;
    size_t offset; /* of its value in struct dt_tuning */
    enum dt_perf_number number;
    bool (*applies)(const struct dt_perf_launch *l);
    const char *collective;
    /* The bytes of a rank's block (ops.h) for which so many are compared with the threshold. NULL:
     * as many. */
    size_t (*block)(const struct dt_perf_launch *l, size_t bytes);
    size_t from, to;    /* sizes, doubled each time */
    bool first_of_high; /* the value is the first size of the second way, not the last of the first
                         */
    const char *low, *high;
};

enum { DT_PERF_TUNE_BYTES = 64 * 1024 * 1024 }; /* of each buffer of a rank */

/* By number, from 0; NULL after the last. In this order: each is measured with what has been chosen
 * before. */
const struct dt_perf_crossover *dt_perf_crossover_at(size_t i);

#endif
