/* All-reduce among hosts in fewer bytes than the numbers have: sums and averages of f32.
 *
 * The direct algorithm of leader_allreduce.h, whatever the count: every host folds one slice, which
 * all others send to it, and sends it to all. What is sent for folding is packed (wireformat.h),
 * and so is what was folded; so numbers are rounded twice. The host that folds rounds what it adds,
 * and takes the rounded result, as all others do: all have the same bytes, whoever folds. Between,
 * numbers are added in f32 in the order of the hosts. With 2 bits what was folded is a whole number
 * of thresholds, and goes on without loss, in 4 bits for up to 7 hosts and in 8 bits for more.
 *
 * With a residual the errors are not lost (Seide et al., 1-Bit Stochastic Gradient Descent,
 * Interspeech 2014): what sending a number loses is added to it on the host that sends, what
 * sending the result loses on the host that folds. */
#ifndef DT_COLL_COMPRESSED_H
#define DT_COLL_COMPRESSED_H

#include "runtime/coll/leaders.h"

enum { DT_COMPRESSED_2BIT_HOSTS = 127 }; /* the most, with DT_WIRE_2BIT */

/* As dt_leaders_all_reduce, for a call of f32. Of options its wire, which is not exact, its
 * threshold and its residual count. */
dt_result_t dt_compressed_all_reduce(struct dt_leaders *l, const struct dt_call *call,
                                     const dt_all_reduce_options_t *options, const void *in,
                                     void *out, size_t count, int divisor);

#endif
