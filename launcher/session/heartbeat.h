/* What PING and PONG show: whether an agent is alive, and the offset of its clock. Pure. All times
 * are CLOCK_BOOTTIME in nanoseconds and read from dtrun's clock, except those named agent_ns. */
#ifndef DT_SESSION_HEARTBEAT_H
#define DT_SESSION_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct dt_heartbeat {
    uint64_t heard_ns;    /* when the agent last sent anything */
    int64_t offset_ns;    /* the agent's clock minus dtrun's */
    uint64_t best_rtt_ns; /* round trip of the answer that gave offset_ns; 0: none yet */
    uint64_t best_at_ns;  /* when that answer came */
    bool overdue;         /* at the last look it had been silent for too long */
};

/* The first message of an agent gives a rough offset: its travel time counts as 0. */
void dt_heartbeat_hello(struct dt_heartbeat *h, uint64_t agent_ns, uint64_t now_ns);
/* An answer arrived. The best offset is that of the answer with the smallest possible error, which
 * is half its round trip plus the clocks' drift since then. */
void dt_heartbeat_pong(struct dt_heartbeat *h, uint64_t sent_ns, uint64_t agent_ns,
                       uint64_t now_ns);
/* Converts an agent's time to dtrun's clock. */
uint64_t dt_heartbeat_local(const struct dt_heartbeat *h, uint64_t agent_ns);

/* Returns whether dtrun itself did not run for a while, because a laptop slept or dtrun was
 * stopped: looks are due every quarter of the limit, and this one is late by more than another
 * quarter. */
bool dt_heartbeat_stood_still(uint64_t now_ns, uint64_t last_look_ns, uint64_t limit_ns);
/* Returns whether the agent has been silent for too long, at this look and at the one before. If
 * dtrun is slow, what the agent has sent may not have been read yet, so dtrun reads before it looks
 * for the second time: soon, if h->overdue. If dtrun stood still, the silence counts only from now
 * on. */
bool dt_heartbeat_is_lost(struct dt_heartbeat *h, uint64_t now_ns, uint64_t last_look_ns,
                          uint64_t limit_ns);

#endif
