/* The number of leaders: ranks of each host that talk to other hosts when large data are reduced.
 * Pure. */
#ifndef DT_COLL_WIDTH_H
#define DT_COLL_WIDTH_H

#include <stddef.h>
#include <stdint.h>

/* least_ranks: ranks of the smallest host; round: bytes that a round may have on every host. 1: the
 * first rank of each host talks for all. */
uint32_t dt_width(size_t hosts, size_t least_ranks, size_t round);

#endif
