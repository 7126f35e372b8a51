/* Collectives among the hosts of a communicator, of which one rank each takes part: a lane.
 *
 * All-reduce has four ways, chosen by size and number of hosts (tuning.h has the limits):
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
 * bytes. The ring begins slice s at host s: its sums of floats may differ from the others' in the
 * last bits. No result depends on timing, and it is the same on all hosts. */
#ifndef DT_HOST_LANES_H
#define DT_HOST_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/host/flow.h"
#include "runtime/host/mesh.h"
#include "runtime/tuning.h"

struct dt_lanes {
    struct dt_mesh *mesh;
    const uint32_t *peers; /* by place: the rank of the communicator that takes part */
    uint32_t me;           /* this rank's place */
    uint32_t n;
    const struct dt_tuning *tuning;
    bool in_order; /* never the ring */
    uint8_t *scratch;
    size_t scratch_bytes;
    const char *way; /* for the flight recorder: that the call takes */
};

void dt_lanes_close(struct dt_lanes *l);

/* Of count elements of the call's type. out may be in. Where the call is DT_AVG, divisor is by what
 * to divide; for other operations it is 1. */
dt_result_t dt_lanes_all_reduce(struct dt_lanes *l, const struct dt_call *call, const void *in,
                                void *out, size_t count, int divisor);
/* From the rank at place root to all others. */
dt_result_t dt_lanes_broadcast(struct dt_lanes *l, const struct dt_call *call, void *buf,
                               size_t bytes, uint32_t root);
/* Returns when every rank has made this very call. */
dt_result_t dt_lanes_barrier(struct dt_lanes *l, const struct dt_call *call);
/* Likewise; *word becomes the sum of every rank's. */
dt_result_t dt_lanes_barrier_adding(struct dt_lanes *l, const struct dt_call *call, uint64_t *word);

/* For algorithms in files of their own. Makes l->scratch so large; what it held is not kept. */
dt_result_t dt_lanes_scratch(struct dt_lanes *l, size_t bytes);
/* Makes 2 * (n - 1) flows: one to each other place, then one from each. Their slots are places. */
void dt_lanes_flows_with_all(const struct dt_lanes *l, struct dt_flow *flows, size_t frames);
/* dt_fold of so many bytes by the call's type and operation; of none nothing. */
void dt_lanes_fold(const struct dt_call *call, void *dst, const void *const *src, size_t n,
                   size_t bytes, int divisor);
/* Connects what the flows need, and runs them. */
dt_result_t dt_lanes_run(struct dt_lanes *l, const struct dt_traffic *t);

#endif
