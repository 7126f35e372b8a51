/* All-gather among hosts of several ranks each: the ranks of a host show each other their blocks in
 * shared memory; then the leaders, which are its first ranks, each send some of these round a ring
 * of the hosts, so that every block comes to every host once; and show what has come to the others.
 */
#ifndef DT_COLL_RING_ALLGATHER_H
#define DT_COLL_RING_ALLGATHER_H

#include "runtime/base/blocks.h"
#include "runtime/coll/leaders.h"
#include "runtime/coll/roster.h"
#include "runtime/shm/shm.h"

struct dt_ring_allgather {
    struct dt_shm *shm;
    const struct dt_leaders
        *leaders;   /* of this rank's local rank; on ranks from "width" on not used */
    uint32_t width; /* leaders of every host, at least 1 */
    uint32_t size;  /* ranks */
    const struct dt_roster *roster;
};

/* Part of a call to which all ranks have come. blocks, the same on all ranks, are those of out;
 * "in" is this rank's, and may be its place in out. */
dt_result_t dt_ring_allgather(const struct dt_ring_allgather *g, const struct dt_call *call,
                              const void *in, void *out, const struct dt_blocks *blocks);

#endif
