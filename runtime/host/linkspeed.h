/* How fast the link is by which this host talks to others, as far as its driver says. */
#ifndef DT_HOST_LINKSPEED_H
#define DT_HOST_LINKSPEED_H

#include <stdint.h>

/* In Mbit/s, of the interface that has this numeric address; 0: nobody knows, as of most virtual
 * ones, or none has it. */
uint32_t dt_linkspeed_mbits(const char *address);

/* How many connections two hosts need to fill such a link. One is handled by one processor of the
 * receiver, which some 25 Gbit/s keep busy: half of that leaves it time. Pure. */
uint32_t dt_linkspeed_streams(uint32_t mbits);

#endif
