/* A token bucket that limits how many lines a rank may have dtrun print: a burst at first, then one
 * line a minute. dtrun keeps lines that its user does not read, and a job may run for months. Pure.
 */
#ifndef DT_AGENT_RANKLINK_RATELIMIT_H
#define DT_AGENT_RANKLINK_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_RATELIMIT_BURST = 1000, DT_RATELIMIT_REFILL_S = 60 };

struct dt_ratelimit {  /* zero-initialised: the bucket is full */
    uint32_t used;     /* tokens taken and not refilled yet */
    uint64_t since_ns; /* refills up to this time are counted */
};

/* Takes one token. Returns false if there is none. */
bool dt_ratelimit_take(struct dt_ratelimit *b, uint64_t now_ns);

#endif
