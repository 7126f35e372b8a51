#include "launcher/session/heartbeat.h"

/* Each clock is within 100 ppm, so two clocks drift apart by less than 1 ns in this many ns. */
enum { NS_PER_NS_OF_DRIFT = 5000 };

static uint64_t largest_error(const struct dt_heartbeat *h, uint64_t now_ns)
{
    return h->best_rtt_ns / 2 + (now_ns - h->best_at_ns) / NS_PER_NS_OF_DRIFT;
}

void dt_heartbeat_hello(struct dt_heartbeat *h, uint64_t agent_ns, uint64_t now_ns)
{
    *h = (struct dt_heartbeat){ .heard_ns = now_ns, .offset_ns = (int64_t)(agent_ns - now_ns) };
}

void dt_heartbeat_pong(struct dt_heartbeat *h, uint64_t sent_ns, uint64_t agent_ns, uint64_t now_ns)
{
    uint64_t rtt = now_ns - sent_ns;

    h->heard_ns = now_ns;
    if (sent_ns > now_ns || (h->best_rtt_ns != 0 && rtt / 2 >= largest_error(h, now_ns)))
        return;
    h->best_rtt_ns = rtt ? rtt : 1;
    h->best_at_ns = now_ns;
    h->offset_ns = (int64_t)(agent_ns - (sent_ns + rtt / 2));
}

uint64_t dt_heartbeat_local(const struct dt_heartbeat *h, uint64_t agent_ns)
{
    return agent_ns - (uint64_t)h->offset_ns;
}

bool dt_heartbeat_stood_still(uint64_t now_ns, uint64_t last_look_ns, uint64_t limit_ns)
{
    return now_ns - last_look_ns > limit_ns / 2;
}

bool dt_heartbeat_is_lost(struct dt_heartbeat *h, uint64_t now_ns, uint64_t last_look_ns,
                          uint64_t limit_ns)
{
    bool was_overdue = h->overdue;

    if (dt_heartbeat_stood_still(now_ns, last_look_ns, limit_ns))
        h->heard_ns = now_ns;
    h->overdue = now_ns > h->heard_ns && now_ns - h->heard_ns >= limit_ns;
    return was_overdue && h->overdue;
}
