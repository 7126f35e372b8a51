/* Time limits of the agent, on dtrun's clock (launcher/base/clock.h). Times are in nanoseconds
 * unless their names say otherwise. Pure. */
#ifndef DT_AGENT_CLOCK_H
#define DT_AGENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Returns how much of limit_ms, counted from since, is left at now. */
static inline uint64_t dt_clock_ms_left(uint64_t since, uint64_t now, uint64_t limit_ms)
{
    uint64_t gone_ms = now > since ? (now - since) / 1000000 : 0;

    return gone_ms < limit_ms ? limit_ms - gone_ms : 0;
}

/* Returns whether this process stood still: it was to run at due, but ran more than a quarter of
 * limit_ms later. It was frozen or stopped, or the machine slept. Others may have stood still as
 * well, so their silence in that time means nothing. */
static inline bool dt_clock_stood_still(uint64_t due, uint64_t now, uint64_t limit_ms)
{
    return now > due && (now - due) / 1000000 > limit_ms / 4;
}

#endif
