/* What has to go between hosts, whatever the way: the elements that leave or enter the host with
 * the most of them, where a collective's blocks have count, or as many in the mean. Pure. */
#ifndef DT_CMD_PERF_BETWEEN_H
#define DT_CMD_PERF_BETWEEN_H

#include "cmd/perf/ops.h"

/* What all hosts fold, and all have. */
double dt_perf_both_ways(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                         size_t count);
/* What one host has, and all get; or the other way. */
double dt_perf_whole(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                     size_t count);
/* What root gives every rank, or every rank gives root. */
double dt_perf_parts_of_others(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                               int root, size_t count);
/* What every rank gives all, or all give every rank: a host's own parts go one way, those of the
 * others the other way. */
double dt_perf_parts_of_either(const struct dt_perf_op *op, const struct dt_perf_layout *l,
                               int root, size_t count);
/* What every rank gives every other. */
double dt_perf_parts_of_pairs(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                              size_t count);
/* What every rank gives the next. */
double dt_perf_to_the_next(const struct dt_perf_op *op, const struct dt_perf_layout *l, int root,
                           size_t count);

#endif
