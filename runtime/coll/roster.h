/* The ranks of a communicator, host after host, and in each by local rank. */
#ifndef DT_COLL_ROSTER_H
#define DT_COLL_ROSTER_H

#include <stdint.h>

struct dt_roster {
    uint32_t *ranks;
    uint32_t *first; /* by host: where its ranks begin; behind the last one: their number */
};

/* Fills r, which has room for so many ranks and one host more than there are and is all 0.
 * node_of: the host of each rank. */
void dt_roster_fill(struct dt_roster *r, const uint32_t *node_of, uint32_t size, uint32_t hosts);

static inline uint32_t dt_roster_count(const struct dt_roster *r, uint32_t host)
{
    return r->first[host + 1] - r->first[host];
}

#endif
