/* All-gather among hosts with several ranks each. The ranks of a host publish their blocks in
 * shared memory. The leaders, its first ranks, each send some of them round a ring of hosts, so
 * that every block reaches every host once. Then they publish what has arrived. */
#ifndef DT_COLL_RING_ALLGATHER_H
#define DT_COLL_RING_ALLGATHER_H

#include "runtime/base/blocks.h"
#include "runtime/coll/layout.h"
#include "runtime/coll/leaders.h"
#include "runtime/shm/shm.h"

struct dt_ring_allgather {
    struct dt_shm *shm;
    const struct dt_leaders *leaders; /* of this rank's local rank; only leaders use it */
    uint32_t n_leaders;               /* leaders of each host, at least 1 */
    uint32_t size;                    /* number of ranks */
    const struct dt_host_ranks *host_ranks;
};

/* Part of a call that all ranks have entered. blocks, the same on all ranks, are those of out. "in"
 * is this rank's block, and may be its place in out. */
dt_result_t dt_ring_allgather(const struct dt_ring_allgather *g, const struct dt_call *call,
                              const void *in, void *out, const struct dt_blocks *blocks);

#endif
