#include "launcher/check/wallclock.h"

/* Unsigned, since clocks that come from elsewhere may be anything. */
struct dt_wallclock dt_wallclock_of(const struct dt_heartbeat *h, int64_t host_wall_ahead_ns,
                                    int64_t own_wall_ahead_ns)
{
    uint64_t offset =
        (uint64_t)h->offset_ns + (uint64_t)host_wall_ahead_ns - (uint64_t)own_wall_ahead_ns;

    return (struct dt_wallclock){ (int64_t)offset, h->best_rtt_ns / 2 };
}
