/* Which thresholds --tune measures: in which launches, and by which calls. Two tables. Pure. */
#ifndef DT_CMD_PERF_THRESHOLDS_H
#define DT_CMD_PERF_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job, as far as it decides what can be measured. */
struct dt_perf_launch {
    int size;
    int hosts;
    int ranks;      /* of rank 0's host */
    int most_ranks; /* of the host that has most */
    int width;      /* how many ranks of every host talk to other hosts where much is folded */
    bool crowded;   /* ranks share CPUs */
};

/* For which a value holds. */
enum dt_perf_number { DT_PERF_OF_RANKS, DT_PERF_OF_HOSTS };

/* A collective, and the bytes of a rank's block (ops.h) for which so many are compared with the
 * threshold. */
struct dt_perf_use {
    const char *collective; /* NULL: the one before was the last */
    size_t (*block)(const struct dt_perf_launch *l, size_t bytes);
};

enum { DT_PERF_BUDGETS = 6 };

/* A size at which one way gives place to another. The lines force either, whatever the size. */
struct dt_perf_crossover {
    const char *name;
    size_t offset; /* of its value in struct dt_tuning */
    enum dt_perf_number number;
    bool (*applies)(const struct dt_perf_launch *l);
    const struct dt_perf_use *uses;
    bool shared;        /* buffers are dt_mem_alloc's */
    size_t from, to;    /* sizes, doubled each time */
    bool first_of_high; /* the value is the first size of the second way, not the last of the first
                         */
    const char *low, *high;
};

/* A number that costs something, of which the least that is enough is chosen: how often to look for
 * a rank that is late before sleeping, or how many connections large calls share. */
struct dt_perf_budget {
    const char *name;
    size_t offset;
    enum dt_perf_number number;
    bool (*applies)(const struct dt_perf_launch *l);
    size_t bytes;      /* of the calls; 0: few, for which rank 0 comes late */
    const char *alone; /* lines with which ranks look in no other way before; "" or whole ones */
    uint64_t values[DT_PERF_BUDGETS];
};

/* By number, from 0; NULL after the last. In this order, but first the budgets of large calls: each
 * is measured with what has been chosen before. */
const struct dt_perf_crossover *dt_perf_crossover_at(size_t i);
const struct dt_perf_budget *dt_perf_budget_at(size_t i);
/* By which budgets are measured, with few bytes: then a call waits, and does little more. */
extern const struct dt_perf_use dt_perf_all_reduce[];

/* The greatest of the sizes for which buffers of so many bytes suffice. */
size_t dt_perf_crossover_to(const struct dt_perf_crossover *x, const struct dt_perf_launch *l,
                            size_t room);

#endif
