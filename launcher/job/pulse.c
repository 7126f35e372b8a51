/* The pulse of the job: PING and PONG, by which dtrun and the agents know that the other is there,
 * and which tell what ranks do; how often; and whom nothing has been heard of for too long. */
#include <stdlib.h>

#include "launcher/job/engine.h"

enum { TICK_MIN_MS = 20 };

/* An agent that has said nothing since is not sent another: its lease is not to be renewed while
 * our patience runs out. */
void dt_job_ping(const struct dt_job *j, struct dt_hostlink *h)
{
    struct dt_msg_ping m = { .time_ns = dt_core_now(&j->core) };

    if (h->heartbeat.heard_ns < h->pinged_ns)
        return;
    h->pinged_ns = m.time_ns;
    dt_hangs_ask(&j->hangs, &m);
    dt_hostlink_send(h, DT_MSG_PING, &m);
    free(m.comms.v);
}

static uint64_t heartbeat_ms(const struct dt_job *j)
{
    return (uint64_t)j->core.config->heartbeat_s * 1000;
}

/* Who waits in calls is learned with the heartbeats: often enough to tell when a wait is over. */
static uint64_t tick_ms(const struct dt_job *j)
{
    uint64_t beat = heartbeat_ms(j) / 4;
    uint64_t look = dt_hangs_look_ms(&j->hangs);

    if (look == 0 || look > beat)
        return beat;
    return look > TICK_MIN_MS ? look : TICK_MIN_MS;
}

/* A limit was set, or is no longer. */
static void adapt_tick(struct dt_job *j)
{
    uint64_t before = j->tick_ms;

    j->tick_ms = tick_ms(j);
    if (j->tick_ms < before && j->core.state != DT_JOB_OVER)
        dt_timers_set(&j->core.timers, DT_TIMER_TICK, j->tick_ms);
}

void dt_job_on_pong(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_pong *m)
{
    const struct dt_msg_step *steps = m->steps.v;

    if (!m->ping_time_ns)
        return; /* a sign of life, unasked */
    dt_heartbeat_pong(&h->heartbeat, m->ping_time_ns, m->time_ns, dt_core_now(&j->core));
    if (!dt_hangs_is_current(&j->hangs, m))
        return;
    for (uint32_t i = 0; i < m->steps.n; i++) {
        if (steps[i].step > j->reached && dt_hostlink_has_ranks(h))
            j->reached = steps[i].step;
    }
    dt_hangs_note(&j->hangs, h, m);
    adapt_tick(j);
}

void dt_job_on_limit(struct dt_job *j, const struct dt_hostlink *h, const struct dt_msg_limit *m)
{
    if (m->generation == j->core.generation && dt_hangs_limit(&j->hangs, h, m->ms))
        adapt_tick(j);
}

static void give_up_link(struct dt_job *j, struct dt_hostlink *h)
{
    enum dt_host_phase was = h->phase;

    dt_hostlink_close(h, "has not answered for %d s", j->core.config->heartbeat_s);
    dt_job_fence(j, h);
    dt_job_link_ended(j, h, was);
}

/* A fresh connection to a host that was lost: the ranks wait for it, so it gets no longer than an
 * agent may be silent. */
static void give_up_retry(struct dt_job *j, struct dt_hostlink *h, uint64_t now)
{
    if (j->core.state == DT_JOB_RECOVERING && now - h->opened_ns >= heartbeat_ms(j) * 1000000)
        dt_hostlink_close(h, "no new connection within %d s", j->core.config->heartbeat_s);
}

void dt_job_on_tick(struct dt_job *j)
{
    uint64_t now = dt_core_now(&j->core);

    dt_timers_set(&j->core.timers, DT_TIMER_TICK, j->tick_ms);
    for (size_t i = 0; i < j->core.config->hosts->n; i++) {
        struct dt_hostlink *h = j->core.links.v[i];

        if (!h || !h->open || h->ending)
            continue;
        if (!h->greeted) {
            give_up_retry(j, h, now);
            continue;
        }
        if (dt_heartbeat_is_lost(&h->heartbeat, now, j->last_look_ns, heartbeat_ms(j) * 1000000))
            give_up_link(j, h);
        else
            dt_job_ping(j, h);
    }
    j->last_look_ns = now;
    if (!j->pause.pausing)
        dt_hangs_watch(&j->hangs);
    dt_core_check(&j->core);
}

void dt_job_start_pulse(struct dt_job *j)
{
    j->tick_ms = tick_ms(j);
    j->last_look_ns = dt_core_now(&j->core);
    dt_timers_set(&j->core.timers, DT_TIMER_TICK, j->tick_ms);
}
