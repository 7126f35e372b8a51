/* The connections between dtrun and its agents, and dtrun's clock and timers: the engine's ops. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "runtime/wire/frame.h"
#include "tests/sim/world.h"

enum {
    LONG_TABLE = 64 * 1024, /* of a longer TABLE, only the generation is decoded */
    SLOW_MS = 200,
};

/* ---- messages under way ---- */

static uint64_t latency(struct sim_world *w, const struct sim_host *h)
{
    uint64_t usual = w->s->latency_ns[h->index % SIM_HOSTS_MAX];
    uint64_t ns = usual + sim_below(&w->network, usual);

    if (sim_percent(&w->network, 2))
        ns += sim_below(&w->network, 20 * usual);
    return w->now_ns < h->slow_until ? ns + SLOW_MS * SIM_MS : ns;
}

/* Control messages overtake data, and nothing overtakes control. Returns the time of arrival. */
static uint64_t put_on_its_way(struct sim_world *w, struct sim_conn *c, enum sim_side side,
                               bool data)
{
    uint64_t from = w->now_ns > c->host->cut_until ? w->now_ns : c->host->cut_until;
    uint64_t *last = &c->last_ns[side][data];
    uint64_t at;

    if (from == UINT64_MAX || c->dead[side])
        return UINT64_MAX;
    at = from + latency(w, c->host);
    if (at < c->last_ns[side][0])
        at = c->last_ns[side][0];
    *last = at > *last ? at : *last;
    return *last;
}

/* Messages to and from a host that is cut off wait. Returns whether this one does. */
static bool is_held_up(struct sim_world *w, struct sim_event *e, const struct sim_host *h)
{
    if (w->now_ns >= h->cut_until)
        return false;
    if (h->cut_until != UINT64_MAX) {
        sim_queue_put_off(&w->queue, e, h->cut_until);
        e->msg = NULL;
    }
    return true;
}

static void note_delay(const struct sim_world *w, struct sim_conn *c, uint64_t sent_ns)
{
    if (w->now_ns - sent_ns > c->most_ns)
        c->most_ns = w->now_ns - sent_ns;
}

/* ---- to the engine ---- */

static void arrive(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    if (is_held_up(w, e, c->host) || !c->open)
        return;
    note_delay(w, c, e->n);
    c->heard_ns = w->now_ns;
    sim_trace(w, "%s -> dtrun: %s", c->host->name, dt_msg_name(e->type));
    if (e->type == DT_MSG_HELLO) {
        c->greeted = true;
        c->same = c->aside && sim_is_same_machine(w, c);
        dt_job_greeted(w->job, c->host->index, &e->msg->hello);
        if (c->open && c->same)
            sim_broken(w, "%s is back, and another name of a host that is used", c->host->name);
        return;
    }
    sim_check_told(w, c, e->type, e->msg);
    dt_job_message(w->job, c->host->index, e->type, e->msg);
    sim_check_handled(w, c, e->type);
}

static void receive(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    if (is_held_up(w, e, c->host) || !c->open)
        return;
    c->pushed = true;
    sim_rejoin_ready(w, c);
    dt_job_pushed(w->job, c->host->index, "");
}

void sim_send(struct sim_world *w, struct sim_agent *a, uint8_t type, union dt_msg *msg)
{
    struct sim_conn *c = a->conn;
    struct sim_event e = {
        .act = arrive, .who = c, .n = w->now_ns, .type = type, .for_engine = true, .msg = msg
    };

    e.at_ns = c->over ? UINT64_MAX : put_on_its_way(w, c, SIM_TO_ENGINE, dt_frame_is_data(type));
    if (e.at_ns == UINT64_MAX) {
        sim_event_free(&e);
        return;
    }
    sim_queue_put(&w->queue, e);
}

void sim_send_pushed(struct sim_world *w, struct sim_agent *a)
{
    struct sim_conn *c = a->conn;
    uint64_t at = c->over ? UINT64_MAX : put_on_its_way(w, c, SIM_TO_ENGINE, false);

    if (at != UINT64_MAX)
        sim_queue_put(&w->queue, (struct sim_event){
                                     .at_ns = at, .act = receive, .who = c, .for_engine = true });
}

static void arrive_end(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    if (is_held_up(w, e, c->host) || !c->open)
        return;
    c->open = false;
    sim_trace(w, "%s -> dtrun: the connection ends%s", c->host->name, e->n ? " by itself" : "");
    sim_check_lost(w, c);
    dt_job_disconnected(w->job, c->host->index, e->n ? "connect: it broke; look at it" : "");
    sim_rejoin_watch(w);
    sim_check_left(w);
}

void sim_conn_end(struct sim_world *w, struct sim_conn *c, const char *why)
{
    uint64_t at = put_on_its_way(w, c, SIM_TO_ENGINE, true);

    if (!c->lost_ns)
        c->lost_ns = w->now_ns;
    if (c->over || at == UINT64_MAX)
        return;
    c->over = true;
    sim_queue_put(
        &w->queue,
        (struct sim_event){
            .at_ns = at, .act = arrive_end, .who = c, .n = why[0] != '\0', .for_engine = true });
}

/* ---- to the agent ---- */

static void arrive_there(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    if (is_held_up(w, e, c->host) || !c->agent)
        return;
    if (w->now_ns < c->host->frozen_until) {
        sim_queue_put_off(&w->queue, e, c->host->frozen_until);
        e->msg = NULL;
        return;
    }
    note_delay(w, c, e->n);
    if (w->now_ns - e->n > 500 * SIM_MS)
        c->agent->fenced_in_time = false;
    if (c->agent->alive)
        sim_agent_hear(w, e);
}

static void hang_up_there(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    if (is_held_up(w, e, c->host) || !c->agent)
        return;
    if (w->now_ns < c->host->frozen_until) {
        sim_queue_put_off(&w->queue, e, c->host->frozen_until);
        return;
    }
    if (c->agent->alive)
        sim_agent_hung_up(w, c->agent);
}

void sim_conn_hang_up(struct sim_world *w, struct sim_conn *c)
{
    uint64_t at = put_on_its_way(w, c, SIM_TO_AGENT, true);

    if (at != UINT64_MAX)
        sim_queue_put(&w->queue, (struct sim_event){ .at_ns = at, .act = hang_up_there, .who = c });
}

void sim_conn_break(struct sim_world *w, struct sim_conn *c)
{
    sim_conn_end(w, c, "it broke");
    sim_conn_hang_up(w, c);
}

struct decoding {
    struct sim_world *w;
    struct sim_conn *c;
    union dt_msg *msg;
};

static int take(void *arg, uint8_t type, const uint8_t *payload, size_t n)
{
    struct decoding *d = arg;

    if (dt_msg_decode(type, payload, n, d->msg) < 0)
        sim_broken(d->w, "dtrun sends a malformed %s", dt_msg_name(type));
    sim_check_sent(d->w, d->c, type, d->msg);
    return 0;
}

/* *msg points into the frame, which the caller frees. So the message is checked here, and nothing
 * may follow its pointers afterwards. */
static void decode(struct sim_world *w, struct sim_conn *c, uint8_t type,
                   const struct dt_put *frames, union dt_msg *msg)
{
    struct decoding d = { w, c, msg };
    struct dt_unframe unframe = { 0 };
    const char *why = NULL;

    if (type == DT_MSG_TABLE && frames->len > LONG_TABLE) {
        struct dt_get get = dt_get_init(frames->data + DT_FRAME_HEADER, 4);

        msg->table = (struct dt_msg_table){ .generation = dt_get_u32(&get) };
        sim_check_sent(w, c, type, msg);
        return;
    }
    if (dt_unframe_feed(&unframe, frames->data, frames->len, take, &d, &why) < 0)
        sim_broken(w, "dtrun sends a malformed frame: %s", why);
    dt_unframe_free(&unframe);
}

static void ops_send(void *arg, size_t host, uint8_t type, const struct dt_put *frames)
{
    struct sim_world *w = arg;
    struct sim_conn *c = w->hosts[host].conn;
    struct sim_event e = { .act = arrive_there, .who = c, .n = w->now_ns, .type = type };

    sim_trace(w, "dtrun -> %s: %s", w->hosts[host].name, dt_msg_name(type));
    if (!c || !c->open || !c->greeted) {
        sim_broken(w, "dtrun sends %s to %s, which is closed", dt_msg_name(type),
                   w->hosts[host].name);
        return;
    }
    e.msg = dt_xcalloc(1, sizeof *e.msg);
    decode(w, c, type, frames, e.msg);
    e.at_ns = put_on_its_way(w, c, SIM_TO_AGENT, dt_frame_is_data(type));
    if (e.at_ns == UINT64_MAX || c->over)
        sim_event_free(&e);
    else
        sim_queue_put(&w->queue, e);
}

/* ---- connections ---- */

static void connected(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;
    struct sim_host *h = c->host;

    if (!c->open)
        return;
    if (w->now_ns < h->frozen_until || (w->now_ns < h->cut_until && h->cut_until != UINT64_MAX)) {
        e->at_ns = h->frozen_until > h->cut_until ? h->frozen_until : h->cut_until;
        sim_queue_put(&w->queue, *e);
        return;
    }
    if (w->now_ns < h->down_until || w->now_ns < h->refuses_until || h->cut_until == UINT64_MAX) {
        c->over = true;
        sim_queue_put(&w->queue, (struct sim_event){ .at_ns = w->now_ns + 3 * SIM_S,
                                                     .act = arrive_end,
                                                     .who = c,
                                                     .n = 1,
                                                     .for_engine = true });
        return;
    }
    c->agent = sim_agent_new(w, c);
}

static void ops_open(void *arg, size_t host)
{
    struct sim_world *w = arg;
    struct sim_host *h = &w->hosts[host];
    struct sim_conn *c = dt_xcalloc(1, sizeof *c);
    uint32_t connecting = 0;
    bool aside = sim_check_opened_aside(w, h);

    sim_trace(w, "dtrun connects to %s", h->name);
    for (const struct sim_conn *other = w->conns; other; other = other->next)
        connecting += other->open && !other->greeted;
    if (connecting >= (uint32_t)w->s->fanout)
        sim_broken(w, "dtrun connects to %s beside %u others", h->name, connecting);
    if (h->conn && h->conn->open)
        sim_broken(w, "dtrun opens a second connection to %s", h->name);
    if (h->lost && !aside)
        sim_broken(w, "dtrun connects to %s, which is lost", h->name);
    *c = (struct sim_conn){ .next = w->conns,
                            .host = h,
                            .open = true,
                            .aside = aside,
                            .opened_ns = w->now_ns,
                            .opened = ++w->witness.count,
                            .stop_grace = UINT32_MAX };
    w->conns = h->conn = c;
    sim_later(w, sim_between(&w->network, 5, 60) * SIM_MS,
              (struct sim_event){ .act = connected, .who = c });
}

static void hung_up(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    c->hung_up = true;
    dt_job_hung_up(w->job, c->host->index);
    sim_check_left(w);
}

static void ops_close(void *arg, size_t host)
{
    struct sim_world *w = arg;
    struct sim_conn *c = w->hosts[host].conn;

    sim_trace(w, "dtrun closes %s", w->hosts[host].name);
    if (!c || !c->open) {
        sim_broken(w, "dtrun closes %s, which is closed", w->hosts[host].name);
        return;
    }
    c->open = false;
    c->given_up = true;
    sim_check_closed(w, c);
    sim_check_lost(w, c);
    sim_rejoin_watch(w);
    sim_conn_hang_up(w, c);
    sim_later(w, sim_between(&w->network, 1, 50) * SIM_MS,
              (struct sim_event){ .act = hung_up, .who = c, .for_engine = true });
}

static const char *ops_phase(void *arg, size_t host)
{
    (void)arg;
    (void)host;
    return "authenticate";
}

/* ---- time ---- */

static uint64_t ops_now_ns(void *arg)
{
    struct sim_world *w = arg;

    return w->now_ns;
}

static void ring(struct sim_world *w, struct sim_event *e)
{
    enum dt_job_timer timer = (enum dt_job_timer)e->n;

    if (e->epoch != w->timer_epoch[timer])
        return;
    sim_trace(w, "timer %d", (int)timer);
    w->witness.limit_over |= timer == DT_TIMER_TIMEOUT;
    if (timer == DT_TIMER_TIMEOUT && (!sim_are_ranks_through(w) || w->witness.ncauses))
        sim_oracle_order(w, (struct sim_order){ .code = DT_EXIT_TIMEOUT });
    if (timer == DT_TIMER_START && !sim_rejoin_is_late(w) &&
        (!w->witness.went || w->witness.went != w->witness.generation))
        sim_oracle_order(w, (struct sim_order){ .code = DT_EXIT_LAUNCH });
    if (timer == DT_TIMER_MISSED)
        sim_oracle_missed(w);
    if (timer == DT_TIMER_OUTAGE)
        sim_oracle_try_again(w);
    if (timer == DT_TIMER_STRAGGLERS && sim_is_exit_grace_over(w))
        sim_oracle_order(w, (struct sim_order){ .code = DT_EXIT_TIMEOUT });
    if (timer == DT_TIMER_GATHER)
        sim_signal_gathered(w);
    else
        dt_job_timer(w->job, timer);
    sim_check_late_handled(w);
}

static void ops_set_timer(void *arg, enum dt_job_timer timer, uint64_t ms)
{
    struct sim_world *w = arg;

    if (timer == DT_TIMER_TICK)
        sim_check_tick(w, ms);
    if (timer == DT_TIMER_FENCE)
        sim_check_fence(w, w->now_ns + ms * SIM_MS);
    if (timer == DT_TIMER_OUTAGE)
        sim_check_outage(w);
    sim_later(w, ms * SIM_MS,
              (struct sim_event){
                  .act = ring, .n = timer, .epoch = ++w->timer_epoch[timer], .for_engine = true });
}

static void ops_stop_timer(void *arg, enum dt_job_timer timer)
{
    struct sim_world *w = arg;

    w->timer_epoch[timer]++;
}

/* ---- output ---- */

static void show(struct sim_world *w, struct sim_event *e)
{
    uint32_t rank = (uint32_t)(e->epoch / SIM_STREAMS);
    int fd = (int)(e->epoch % SIM_STREAMS) + 1;

    w->readers[fd - 1].owed -= e->n;
    w->readers[fd - 1].read_ns = w->now_ns;
    if (w->ended)
        return;
    dt_job_shown(w->job, rank, fd, e->n);
    if (w->readers[fd - 1].owed == 0)
        dt_job_output_moved(w->job);
}

static void ops_output(void *arg, uint32_t rank, int fd, const void *data, size_t n)
{
    struct sim_world *w = arg;
    struct sim_reader *reader = &w->readers[fd - 1];

    sim_check_output(w, rank, fd, data, n);
    if (reader->owed == 0)
        reader->owed_ns = w->now_ns;
    reader->owed += n;
    sim_later(w, w->s->reader_ns[fd - 1],
              (struct sim_event){ .act = show,
                                  .n = n,
                                  .epoch = (uint64_t)rank * SIM_STREAMS + (unsigned)fd - 1,
                                  .for_engine = true });
}

static void ops_output_quiet(void *arg, uint32_t rank, int fd)
{
    sim_check_output_quiet(arg, rank, fd);
}

static void ops_output_eof(void *arg, uint32_t rank, int fd)
{
    sim_check_output_eof(arg, rank, fd);
}

static void ops_output_end(void *arg)
{
    sim_oracle_finished(arg);
}

static const char *ops_output_awaits(void *arg, int fd, uint64_t ms)
{
    struct sim_world *w = arg;

    return w->readers[fd - 1].owed && sim_unread_ns(w, fd) >= ms * SIM_MS ? "read" : NULL;
}

static void ops_suspend(void *arg)
{
    struct sim_world *w = arg;
    uint64_t ns = sim_between(&w->network, 1, 40000) * SIM_MS;

    sim_trace(w, "dtrun is suspended");
    sim_check_suspended(w);
    sim_stand_still(w, ns);
    sim_oracle_suspended(w, ns);
    w->pausing = false;
    sim_trace(w, "dtrun is continued");
}

static void ops_end(void *arg)
{
    struct sim_world *w = arg;

    w->ended = true;
    sim_check_all_read(w);
    for (struct sim_conn *c = w->conns; c; c = c->next) {
        if (c->open)
            sim_broken(w, "dtrun ends while %s is connected", c->host->name);
    }
    sim_trace(w, "dtrun ends with %d", dt_job_exit_code(w->job));
}

const struct dt_job_ops sim_ops = {
    .open = ops_open,
    .phase = ops_phase,
    .send = ops_send,
    .close = ops_close,
    .now_ns = ops_now_ns,
    .set_timer = ops_set_timer,
    .stop_timer = ops_stop_timer,
    .output = ops_output,
    .output_quiet = ops_output_quiet,
    .output_eof = ops_output_eof,
    .output_end = ops_output_end,
    .output_awaits = ops_output_awaits,
    .stdin_credit = sim_stdin_credit,
    .stdin_hold = sim_stdin_hold,
    .suspend = ops_suspend,
    .end = ops_end,
};
