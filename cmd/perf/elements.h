/* Creates inputs whose results are known exactly, and counts wrong elements. Pure.
 *
 * Sums, products and averages stay within the whole numbers that every type represents exactly, in
 * any order of reduction. So every wrong element is counted, and no other. The values of data that
 * are only moved depend on their rank and position. */
#ifndef DT_CMD_PERF_ELEMENTS_H
#define DT_CMD_PERF_ELEMENTS_H

#include "cmd/perf/ops.h"

/* Fills a rank's input, which has "elements" elements in all its blocks. */
void dt_perf_fill(const struct dt_perf_op *op, const struct dt_perf_case *c, void *in,
                  size_t elements, int rank, int n);
/* Counts the wrong elements in a result of rank me, whose blocks have count elements on average.
 * Returns SIZE_MAX if memory ran out. */
size_t dt_perf_wrong(const struct dt_perf_op *op, const struct dt_perf_case *c, const void *result,
                     size_t count, int me, int n);

#endif
