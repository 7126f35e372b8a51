/* The ranks of a communicator, grouped by host, and ordered by local rank within a host. */
#ifndef DT_COLL_ROSTER_H
#define DT_COLL_ROSTER_H

#include <stdint.h>

struct dt_roster {
    uint32_t *ranks;
    uint32_t *first; /* by host: index of its first rank; one more entry: the number of ranks */
};

/* Fills in r. It is zeroed, and has room for all ranks and for one host more than there are.
 * node_of: the host of each rank. */
void dt_roster_fill(struct dt_roster *r, const uint32_t *node_of, uint32_t size, uint32_t hosts);

static inline uint32_t dt_roster_count(const struct dt_roster *r, uint32_t host)
{
    return r->first[host + 1] - r->first[host];
}

#endif
