/* What PING and PONG tell: whether an agent is there, and how its clock stands to ours. Pure; all
 * times are CLOCK_BOOTTIME in nanoseconds, except those the agent read from its own. */
#ifndef DT_SESSION_HEARTBEAT_H
#define DT_SESSION_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct dt_heartbeat {
    uint64_t heard_ns;    /* when anything came from the agent last */
    int64_t offset_ns;    /* agent's clock less ours */
    uint64_t best_rtt_ns; /* of the answer that offset_ns comes from; 0: none yet */
    uint64_t best_at_ns;  /* when that answer came */
};

/* The first word of an agent: a rough offset (it takes the way here for nothing). */
void dt_heartbeat_hello(struct dt_heartbeat *h, uint64_t agent_ns, uint64_t now_ns);
/* An answer. The one with the smallest possible error gives the offset: half its round trip, and
 * what the clocks may have drifted apart since. */
void dt_heartbeat_pong(struct dt_heartbeat *h, uint64_t sent_ns, uint64_t agent_ns,
                       uint64_t now_ns);
/* An agent's time in our clock. */
uint64_t dt_heartbeat_local(const struct dt_heartbeat *h, uint64_t agent_ns);

/* Whether the agent has been silent for too long. When dtrun itself did not run for a while (the
 * last look was more than a quarter of the limit late: a laptop slept, dtrun was stopped), the
 * silence is ours: it counts from now on. */
bool dt_heartbeat_is_lost(struct dt_heartbeat *h, uint64_t now_ns, uint64_t last_look_ns,
                          uint64_t limit_ns);

#endif
