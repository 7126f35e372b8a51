/* Inputs whose results are known exactly, and counting the elements that are something else. Pure.
 *
 * Sums, products and what halves round stay within the whole numbers that every type has, whatever
 * the order of folding, so that each wrong element is counted and no other. What is only moved
 * tells its rank and its place. */
#ifndef DT_CMD_PERF_ELEMENTS_H
#define DT_CMD_PERF_ELEMENTS_H

#include "cmd/perf/ops.h"

/* Fills a rank's input, "elements" in all its blocks. */
void dt_perf_fill(const struct dt_perf_op *op, const struct dt_perf_case *c, void *in,
                  size_t elements, int rank, int n);
/* How many elements of a result of rank me, whose blocks have count in the mean, are wrong.
 * SIZE_MAX: there was no memory to tell. */
size_t dt_perf_wrong(const struct dt_perf_op *op, const struct dt_perf_case *c, const void *result,
                     size_t count, int me, int n);

#endif
