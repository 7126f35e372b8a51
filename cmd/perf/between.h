/* The least that must go between hosts, whatever the algorithm: the number of elements that leave
 * or enter the busiest host. A collective's blocks have count elements, or as many on average.
 * Pure. */
#ifndef DT_CMD_PERF_BETWEEN_H
#define DT_CMD_PERF_BETWEEN_H

#include "cmd/perf/ops.h"

/* For data that all hosts reduce and all receive. */
double dt_perf_both_ways(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                         size_t count);
/* For data that one host has and all receive, or the reverse. */
double dt_perf_whole(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                     size_t count);
/* For data that the root sends to every rank, or every rank sends to the root. */
double dt_perf_blocks_of_others(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                                int root, size_t count);
/* For data that every rank sends to all, or all send to every rank: a host's own blocks go in one
 * direction, those of the others in the other. */
double dt_perf_blocks_of_either(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                                int root, size_t count);
/* For data that every rank sends to every other. */
double dt_perf_blocks_of_pairs(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                               int root, size_t count);
/* For data that every rank sends to the next one. */
double dt_perf_to_the_next(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                           size_t count);

#endif
