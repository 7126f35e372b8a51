/* Folds large data among hosts, on two levels: the ranks of a host fold what they have through
 * shared memory, then several ranks of every host, its leaders, each fold a part with their like on
 * the other hosts, at the same time and over connections of their own; and those that are to have
 * what comes of it take it from shared memory.
 *
 * Data go in chunks (layout.h), of which one is folded within the hosts while others are on their
 * way between them. What a host is to fold all others send to it; then it sends it to whom it is
 * for. Sums have the order of a host's ranks, then that of the hosts, and are rounded once in each:
 * the same bytes, whoever they are for. */
#ifndef DT_COLL_HIERARCHICAL_H
#define DT_COLL_HIERARCHICAL_H

#include "runtime/coll/layout.h"
#include "runtime/coll/leaders.h"
#include "runtime/shm/shm.h"

struct dt_hierarchical {
    struct dt_shm *shm;
    struct dt_leaders *leaders; /* of this rank's local rank; on ranks from "width" on not used */
    const struct dt_roster *roster;
    uint32_t most;  /* ranks that a host has */
    uint32_t width; /* leaders of every host: its first ranks; 1: no hierarchical all-reduce */
    bool for_few;   /* so few hosts that the others may be, by one lane if there are not more */
    size_t round;   /* bytes that a round within any of the hosts may take */
};

/* Settles the rest, alike on all hosts: by that which has least ranks, and that which has least
 * memory for each (few ranks and very many have more than those between). */
void dt_hierarchical_settle(struct dt_hierarchical *t);

struct dt_hierarchical_terms {
    enum dt_layout_for whom;
    uint32_t home;    /* for root: its host, */
    bool is_root;     /* and whether this rank is it */
    int host_divisor; /* of each host's sum, */
    double divisor;   /* and of that of all hosts, for DT_AVG: else 1 */
    bool round;       /* hosts are folded in the order of a ring (leader_allreduce.h) */
};

/* Of call->count elements, of each rank's block if it is for each; at least one. A whole call,
 * which returns when every rank has made it. out, which only those need that it is for, may be
 * "in"; for each, also this rank's block of it. */
dt_result_t dt_hierarchical_fold(const struct dt_hierarchical *t, const struct dt_call *call,
                                 const void *in, void *out,
                                 const struct dt_hierarchical_terms *terms);

#endif
