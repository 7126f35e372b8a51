/* All-reduce among the hosts of a communicator, of which one rank each takes part.
 *
 * It has four algorithms, chosen by size and number of hosts (tuning.h has most limits):
 *
 *   exchange   everybody sends everything to everybody, in segments that are folded while the next
 *              ones arrive; with two hosts that is as little as can be sent
 *   gathering  the same in log2(hosts) steps with few connections each (Bruck et al., IEEE TPDS
 *              8(11), 1997), for small data among many hosts
 *   direct     every host folds one slice, which all others send to it, and sends it to all
 *   ring       slices travel round, folded at every stop, then round again (Patarasuk and Yuan,
 *              JPDC 69(2), 2009)
 *
 * All but the ring fold in the order of the hosts with one rounding, so that they give the same
 * bytes. The ring begins slice s at host s: its sums of f32 and f64 may differ from the others' in
 * the last bits; f16 and bf16 never go round it. No result depends on timing, and it is the same
 * on all hosts. */
#ifndef DT_COLL_LEADER_ALLREDUCE_H
#define DT_COLL_LEADER_ALLREDUCE_H

#include "runtime/base/blocks.h"
#include "runtime/coll/leaders.h"

/* Of count elements of the call's type. out may be in. Where the call is DT_AVG, divisor is by what
 * to divide; for other operations it is 1. */
dt_result_t dt_leaders_all_reduce(struct dt_leaders *l, const struct dt_call *call, const void *in,
                                  void *out, size_t count, double divisor);
/* Whether it would go round the ring. */
bool dt_leaders_goes_round(const struct dt_leaders *l, dt_dtype_t dtype, size_t bytes);
/* Folds bytes of all hosts, which stand "at" among so many as a whole, in the order of the ring.
 * src: by place. dst may be one of them. */
void dt_leaders_fold_round(const struct dt_leaders *l, const struct dt_call *call, void *dst,
                           const void *const *src, struct dt_span of, size_t whole, double divisor);

#endif
