/* Hierarchical reduction of large data among hosts. The ranks of a host reduce through shared
 * memory. Then several ranks of each host, its leaders, each reduce a share with their peers on the
 * other hosts, at the same time and over connections of their own. The ranks that need the result
 * copy it from shared memory.
 *
 * Data are processed in chunks (layout.h): one chunk is reduced within the hosts while others
 * travel between them. Every other host sends a block to the host that reduces it, and that host
 * sends the result to the hosts that need it. Sums follow the order of a host's ranks, then that of
 * the hosts, and are rounded once in each. So the bytes do not depend on which ranks get them. */
#ifndef DT_COLL_HIERARCHICAL_H
#define DT_COLL_HIERARCHICAL_H

#include "runtime/coll/layout.h"
#include "runtime/coll/leaders.h"
#include "runtime/shm/shm.h"

struct dt_hierarchical {
    struct dt_shm *shm;
    struct dt_leaders *leaders; /* of this rank's local rank; only leaders use it */
    const struct dt_host_ranks *host_ranks;
    uint32_t most_ranks; /* ranks of the largest host */
    uint32_t n_leaders;  /* leaders of each host: its first ranks; 1: no hierarchical all-reduce */
    bool serves_blocks;  /* the hosts are few enough for DT_LAYOUT_FOR_ROOT and DT_LAYOUT_FOR_EACH,
                            which work even with one leader */
    size_t round;        /* bytes that a round may have on every host */
};

/* Computes the members after host_ranks from the first three, with the same result on all hosts.
 * The number of leaders follows from the host with the fewest ranks, the size of a round from the
 * host whose ranks have the least memory each (not always the one with the most ranks). */
void dt_hierarchical_init(struct dt_hierarchical *t);

struct dt_hierarchical_result {
    enum dt_layout_for recipients;
    uint32_t root_host; /* with DT_LAYOUT_FOR_ROOT: root's host */
    bool is_root;       /* likewise: this rank is root */
    int host_divisor;   /* for DT_AVG: each host's sum is divided by this; else 1 */
    double divisor;     /* for DT_AVG: the sum of all hosts is divided by this; else 1 */
    bool in_ring_order; /* hosts are reduced in the order of the ring (leader_allreduce.h) */
};

/* Reduces call->count elements, at least one; with DT_LAYOUT_FOR_EACH, that number in each rank's
 * block. Returns when every rank has made the call. Only ranks that get a result need out. out may
 * be "in"; with DT_LAYOUT_FOR_EACH it may also be this rank's block of "in". */
dt_result_t dt_hierarchical_reduce(const struct dt_hierarchical *t, const struct dt_call *call,
                                   const void *in, void *out,
                                   const struct dt_hierarchical_result *result);

#endif
