/* All-reduce among the hosts of a communicator. One rank of each host takes part.
 *
 * Size and number of hosts choose one of four algorithms (tuning.h has most thresholds):
 *
 *   exchange   each host sends its data to every other, in segments that are reduced while the next
 *              ones arrive; no algorithm sends less between two hosts
 *   gathering  the same in log2(hosts) steps over few connections each (Bruck et al., IEEE TPDS
 *              8(11), 1997), for small messages among many hosts
 *   direct     each host reduces one block, which all others send to it, and sends it to all
 *   ring       blocks travel round a ring and are reduced at every host, then travel round again
 *              (Patarasuk and Yuan, JPDC 69(2), 2009)
 *
 * All but the ring reduce in the order of the hosts with one rounding, so they give the same bytes.
 * The ring starts block s at host s: its sums of f32 and f64 may differ from the others' in the
 * last bits, and it is not used for f16 and bf16. No result depends on timing, and all hosts get
 * the same one. */
#ifndef DT_COLL_LEADER_ALLREDUCE_H
#define DT_COLL_LEADER_ALLREDUCE_H

#include "runtime/base/blocks.h"
#include "runtime/coll/leaders.h"

/* All-reduces count elements of the call's type. out may be in. divisor: for DT_AVG what to divide
 * by; for other operations 1. */
dt_result_t dt_leaders_all_reduce(struct dt_leaders *l, const struct dt_call *call, const void *in,
                                  void *out, size_t count, double divisor);
/* Whether the ring would be used for this size. */
bool dt_leaders_uses_ring(const struct dt_leaders *l, dt_dtype_t dtype, size_t bytes);
/* Reduces bytes of all hosts in the order of the ring. range: where src and dst lie in data of
 * "whole" bytes. src: by place. dst may be one of them. */
void dt_leaders_fold_in_ring_order(const struct dt_leaders *l, const struct dt_call *call,
                                   void *dst, const void *const *src, struct dt_range range,
                                   size_t whole, double divisor);

#endif
