/* All-reduce of large data among hosts of several ranks each, on two levels: the ranks of a host
 * fold what they have through shared memory, then several ranks of every host, its lanes, each fold
 * a part with their like on the other hosts, at the same time and over connections of their own,
 * and all ranks take the results from shared memory.
 *
 * Data go in chunks, of which one is folded within the hosts while others are on their way between
 * them. Every chunk is cut into a slice for each lane, and a lane's slice into a part for each
 * host, which folds it for all (the direct way of lanes.h). Sums have the order of a host's ranks,
 * then that of the hosts, and are rounded once in each. */
#ifndef DT_HOST_TWOLEVEL_H
#define DT_HOST_TWOLEVEL_H

#include "runtime/host/lanes.h"
#include "runtime/host/shm.h"

struct dt_twolevel {
    struct dt_shm *shm;
    struct dt_lanes *lanes; /* of this rank's local rank; on ranks from "width" on not used */
    uint32_t width;         /* lanes of every host: its first ranks; 0 or 1: not for this way */
    size_t round;           /* bytes that a round within any of the hosts may take */
};

/* Settles width and round for hosts that have so many ranks, between the least and the most. */
void dt_twolevel_settle(struct dt_twolevel *t, uint32_t least, uint32_t most);

/* Of call->count elements; a whole call, checked as dt_shm_begin and dt_flow_run do. out may be in.
 * divisor: of DT_AVG's sum, or 1. */
dt_result_t dt_twolevel_all_reduce(const struct dt_twolevel *t, const struct dt_call *call,
                                   const void *in, void *out, int divisor);

#endif
