/* All-reduce among hosts with a compressed format on the wire, for sums and averages of f32.
 *
 * It uses the direct algorithm of leader_allreduce.h for every size: each host reduces one block,
 * which all others send to it, and sends the result to all. Both are packed (wireformat.h), so
 * numbers are rounded twice. The reducing host rounds its own contribution too, and keeps the
 * rounded result like all others. So all hosts have the same bytes. In between, numbers are added
 * in f32, in the order of the hosts. With 2 bits the result is a whole number of thresholds and is
 * sent without loss, in 4 bits for up to 7 hosts and in 8 bits for more.
 *
 * A residual keeps the errors for later calls (Seide et al., 1-Bit Stochastic Gradient Descent,
 * Interspeech 2014). The error of a contribution is added on the host that sends it, the error of a
 * result on the host that reduced it. */
#ifndef DT_COLL_COMPRESSED_H
#define DT_COLL_COMPRESSED_H

#include "runtime/coll/leaders.h"

enum { DT_COMPRESSED_2BIT_HOSTS = 127 }; /* the most hosts with DT_WIRE_2BIT */

/* Like dt_leaders_all_reduce, for a call of f32. It uses the options' wire, which is not exact,
 * their threshold and their residual. */
dt_result_t dt_compressed_all_reduce(struct dt_leaders *l, const struct dt_call *call,
                                     const dt_all_reduce_options_t *options, const void *in,
                                     void *out, size_t count, int divisor);

#endif
