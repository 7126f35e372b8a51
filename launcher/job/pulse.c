#include "launcher/job/pulse.h"

#include <stdlib.h>

enum {
    TICK_MIN_MS = 20,
    TICK_MAX_MS = 30 * 1000, /* a quarter of the lease that agents have until START */
    READ_MS = 1, /* in which the loop reads what has arrived; 0 could expire before that */
};

/* While the last PING has no answer, dtrun sends no other: it would renew the lease of an agent
 * that dtrun may be about to give up. */
void dt_pulse_ping(const struct dt_pulse *p, struct dt_hostlink *h)
{
    struct dt_msg_ping m = { .time_ns = dt_core_now(p->core) };

    if (h->heartbeat.heard_ns < h->pinged_ns)
        return;
    h->pinged_ns = m.time_ns;
    dt_hang_detect_ask(p->hang_detect, &m);
    dt_hostlink_send(h, DT_MSG_PING, &m);
    free(m.comms.v);
}

static uint64_t heartbeat_ms(const struct dt_pulse *p)
{
    return (uint64_t)p->core->config->heartbeat_s * 1000;
}

/* Returns the interval of ticks. It is short enough to notice in time when a wait exceeds its
 * limit. */
static uint64_t tick_ms(const struct dt_pulse *p)
{
    uint64_t quarter = heartbeat_ms(p) / 4;
    uint64_t beat = quarter < TICK_MAX_MS ? quarter : TICK_MAX_MS;
    uint64_t look = dt_hang_detect_look_ms(p->hang_detect);

    if (look == 0 || look > beat)
        return beat;
    return look > TICK_MIN_MS ? look : TICK_MIN_MS;
}

/* A limit may have been set or removed. */
static void adapt_tick(struct dt_pulse *p)
{
    uint64_t before = p->tick_ms;

    p->tick_ms = tick_ms(p);
    if (p->tick_ms < before && p->core->state != DT_JOB_OVER)
        dt_timers_shorten(&p->core->timers, DT_TIMER_TICK, p->tick_ms);
}

bool dt_pulse_on_pong(struct dt_pulse *p, struct dt_hostlink *h, const struct dt_msg_pong *m)
{
    if (!m->ping_time_ns) /* an unsolicited sign of life */
        return false;
    dt_heartbeat_pong(&h->heartbeat, m->ping_time_ns, m->time_ns, dt_core_now(p->core));
    if (!dt_hang_detect_is_current(p->hang_detect, m))
        return false;
    dt_hang_detect_note(p->hang_detect, h, m);
    adapt_tick(p);
    return true;
}

void dt_pulse_on_limit(struct dt_pulse *p, const struct dt_hostlink *h,
                       const struct dt_msg_limit *m)
{
    if (m->generation == p->core->generation && dt_hang_detect_limit(p->hang_detect, h, m->ms))
        adapt_tick(p);
}

void dt_pulse_begin_tick(const struct dt_pulse *p)
{
    dt_timers_set(&p->core->timers, DT_TIMER_TICK, p->tick_ms);
}

/* The restart waits for the fresh connection to a lost host, so this has only as much time as an
 * agent may be silent. If dtrun stood still until now, it first reads what came meanwhile. */
static void limit_retry(const struct dt_pulse *p, struct dt_hostlink *h, uint64_t now_ns)
{
    bool stood_still = now_ns - p->last_look_ns >= heartbeat_ms(p) * 1000000;

    if (p->core->state == DT_JOB_RECOVERING && !stood_still &&
        now_ns - h->opened_ns >= heartbeat_ms(p) * 1000000)
        dt_hostlink_close(h, "did not connect again within %d s (phase: %s)",
                          p->core->config->heartbeat_s, dt_hostlink_awaits(h));
}

bool dt_pulse_check(const struct dt_pulse *p, struct dt_hostlink *h, uint64_t now_ns)
{
    if (!dt_hostlink_is_open(h) || h->ending)
        return true;
    if (h->phase == DT_HOST_CONNECTING) {
        limit_retry(p, h, now_ns);
        return true;
    }
    if (dt_heartbeat_is_lost(&h->heartbeat, now_ns, p->last_look_ns, heartbeat_ms(p) * 1000000))
        return false;
    if (h->heartbeat.overdue)
        dt_timers_shorten(&p->core->timers, DT_TIMER_TICK, READ_MS);
    dt_pulse_ping(p, h);
    return true;
}

void dt_pulse_end_tick(struct dt_pulse *p, uint64_t now_ns)
{
    p->last_look_ns = now_ns;
}

void dt_pulse_start(struct dt_pulse *p)
{
    p->tick_ms = tick_ms(p);
    dt_pulse_end_tick(p, dt_core_now(p->core));
    dt_pulse_begin_tick(p);
}
