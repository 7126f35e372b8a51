/* How a host's wall clock differs from this machine's, as NTP would estimate it. Pure.
 *
 * PING and PONG compare clocks that count from boot; each side knows how far its wall clock is
 * ahead of its own. */
#ifndef DT_CHECK_WALLCLOCK_H
#define DT_CHECK_WALLCLOCK_H

#include <stdint.h>

#include "launcher/session/heartbeat.h"

struct dt_wallclock {
    int64_t offset_ns; /* the host's minus ours */
    uint64_t error_ns; /* of the offset: half the round trip of the quickest answer */
};

/* h must have heard an answer. wall_ahead: CLOCK_REALTIME minus CLOCK_BOOTTIME of either side. */
struct dt_wallclock dt_wallclock_of(const struct dt_heartbeat *h, int64_t host_wall_ahead_ns,
                                    int64_t own_wall_ahead_ns);

#endif
