/* How many ranks of every host talk to other hosts where much is folded: its leaders. Pure. */
#ifndef DT_COLL_WIDTH_H
#define DT_COLL_WIDTH_H

#include <stddef.h>
#include <stdint.h>

/* least_ranks: of the host that has fewest; round: bytes that a round within any of the hosts may
 * take. 1: the first rank of each talks for all. */
uint32_t dt_width(size_t hosts, size_t least_ranks, size_t round);

#endif
