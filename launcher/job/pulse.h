/* PING and PONG show dtrun and each agent that the other is alive. A PONG also says what the ranks
 * of its host are doing, so dtrun sends PINGs as often as --heartbeat and hang detection need. */
#ifndef DT_JOB_PULSE_H
#define DT_JOB_PULSE_H

#include "launcher/job/core/core.h"
#include "launcher/job/hang_detect.h"

struct dt_pulse {
    struct dt_core *core;
    struct dt_hang_detect *hang_detect; /* is told what PONG and LIMIT report */
    uint64_t tick_ms;
    /* time in which dtrun itself did not run does not count as silence of the agents */
    uint64_t last_look_ns;
};

void dt_pulse_start(struct dt_pulse *p);
void dt_pulse_ping(const struct dt_pulse *p, struct dt_hostlink *h);
/* Returns whether the PONG describes the running generation. */
bool dt_pulse_on_pong(struct dt_pulse *p, struct dt_hostlink *h, const struct dt_msg_pong *m);
void dt_pulse_on_limit(struct dt_pulse *p, const struct dt_hostlink *h,
                       const struct dt_msg_limit *m);

/* On DT_TIMER_TICK call begin_tick, then check for each host, then end_tick. */
void dt_pulse_begin_tick(const struct dt_pulse *p);
/* Pings the host. If its agent has been silent for too long, returns false instead, and the caller
 * gives the host up. */
bool dt_pulse_check(const struct dt_pulse *p, struct dt_hostlink *h, uint64_t now_ns);
void dt_pulse_end_tick(struct dt_pulse *p, uint64_t now_ns);

#endif
