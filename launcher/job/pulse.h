/* PING and PONG, by which dtrun and each agent know that the other is alive. A PONG also says what
 * the ranks of the host do, so PINGs are sent as often as --heartbeat and hang detection need. */
#ifndef DT_JOB_PULSE_H
#define DT_JOB_PULSE_H

#include "launcher/job/core/core.h"
#include "launcher/job/hang_detect.h"

struct dt_pulse {
    struct dt_core *core;
    struct dt_hang_detect *hang_detect; /* learns from PONG and LIMIT */
    uint64_t tick_ms;
    uint64_t last_look_ns; /* time in which dtrun itself stood still is no silence of the agents */
};

void dt_pulse_start(struct dt_pulse *p);
void dt_pulse_ping(const struct dt_pulse *p, struct dt_hostlink *h);
/* Returns whether the PONG describes the running generation. */
bool dt_pulse_on_pong(struct dt_pulse *p, struct dt_hostlink *h, const struct dt_msg_pong *m);
void dt_pulse_on_limit(struct dt_pulse *p, const struct dt_hostlink *h,
                       const struct dt_msg_limit *m);

/* DT_TIMER_TICK: begin, then check each host, then end. */
void dt_pulse_begin_tick(const struct dt_pulse *p);
/* Pings the host. Returns false, instead, if its agent has been silent for too long: then the
 * caller gives it up. */
bool dt_pulse_check(const struct dt_pulse *p, struct dt_hostlink *h, uint64_t now_ns);
void dt_pulse_end_tick(struct dt_pulse *p, uint64_t now_ns);

#endif
