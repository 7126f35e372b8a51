/* How dtrun ends ranks and itself: with STOP at once or after --kill-grace, soon after it was told
 * to end, and sooner if the user insists. Ctrl-Z stops dtrun when all ranks are known to be
 * stopped. */
#include <inttypes.h>
#include <signal.h>

#include "tests/sim/world.h"

enum {
    LATE_MS = 150,
    PATIENCE_MS = 2000, /* how long dtrun waits after STOP and END: for agents, for a reader */
    CUT_MS = 500,
    PAUSE_MS = 1000, /* the longest that Ctrl-Z waits for agents */
};

static uint64_t grace_ms(const struct sim_world *w)
{
    return (uint64_t)w->s->kill_grace_s * 1000;
}

/* ---- STOP ---- */

/* Whether the ranks of a job that was told to end may have been killed ms ago. */
static bool is_grace_over(const struct sim_world *w, uint64_t ms)
{
    const struct sim_witness *x = &w->witness;

    uint64_t suspended_ns = x->suspended_ns - x->orders[0].suspended_ns;

    return x->insisted ||
           w->now_ns - x->orders[0].at_ns - suspended_ns >= (grace_ms(w) + ms) * SIM_MS;
}

bool sim_is_reader_late(const struct sim_world *w)
{
    return w->witness.finished || (w->witness.norders && is_grace_over(w, PATIENCE_MS));
}

/* Ranks that are started again, or that cannot all be started, get no grace, unless they leave a
 * host that shuts down. */
static void check_grace(struct sim_world *w, const struct dt_msg_stop *m)
{
    const struct sim_witness *x = &w->witness;
    bool at_once = (x->restarting && !x->graceful) || x->cut_off || sim_has_refusal(x);

    if (m->grace_ms && m->grace_ms != grace_ms(w))
        sim_broken(w, "STOP gives ranks %u ms", m->grace_ms);
    if (x->norders ? !m->grace_ms && !is_grace_over(w, 0) && !at_once
                   : (m->grace_ms == 0) != (at_once || grace_ms(w) == 0))
        sim_broken(w, "STOP gives ranks %u ms, and ranks are %s", m->grace_ms,
                   at_once ? "to be ended at once" : "to have a grace");
}

/* A second STOP must shorten the first or follow another order of the user. A grace of 0 s may be
 * over at once. */
void sim_check_stop(struct sim_world *w, struct sim_conn *c, const struct dt_msg_stop *m)
{
    bool again = m->grace_ms >= c->stop_grace && w->witness.ordered < c->stopped;

    if (!c->started)
        sim_broken(w, "STOP goes to %s, where no rank runs", c->host->name);
    if (again && (grace_ms(w) || !w->witness.norders))
        sim_broken(w, "STOP goes to %s a second time", c->host->name);
    check_grace(w, m);
    c->stop_grace = m->grace_ms;
    c->stopped = ++w->witness.count;
    if (!sim_check_auxiliaries_stopped(w))
        sim_oracle_decided(w);
}

static void check_all_killed(struct sim_world *w, const char *when)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (c && c->open && c->started == w->witness.generation && c->started && c->stop_grace)
            sim_broken(w, "ranks on %s are not killed %s", c->host->name, when);
    }
}

/* ---- how soon it ends ---- */

/* Puts the event off until dtrun has had time to act, if it has stood still. */
static bool is_early(struct sim_world *w, struct sim_event *e)
{
    uint64_t acts_ns = w->standing_until + (uint64_t)e->n * SIM_MS;

    if (w->now_ns >= acts_ns)
        return false;
    sim_later(w, acts_ns - w->now_ns, *e);
    return true;
}

static void expect_kill(struct sim_world *w, struct sim_event *e)
{
    if (!is_early(w, e))
        check_all_killed(w, "although --kill-grace is over");
}

static void expect(struct sim_world *w, uint64_t ms, sim_action_f act)
{
    sim_later(w, ms * SIM_MS, (struct sim_event){ .act = act, .n = ms, .for_engine = true });
}

static void expect_last(struct sim_world *w, struct sim_event *e)
{
    if (!is_early(w, e))
        sim_broken(w, "dtrun was told to end, and still waits");
}

/* Once dtrun has dropped output, agents may need more time to report. */
static void expect_end(struct sim_world *w, struct sim_event *e)
{
    if (is_early(w, e))
        return;
    if (sim_has_dropped(w))
        expect(w, PATIENCE_MS + CUT_MS + LATE_MS, expect_last);
    else
        expect_last(w, e);
}

void sim_stopping_ordered(struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    if (x->norders != 1 || (x->decided && !x->restarting && !x->cut_off))
        return;
    expect(w, grace_ms(w) + LATE_MS, expect_kill);
    expect(w, grace_ms(w) + 2 * PATIENCE_MS + CUT_MS + LATE_MS, expect_end);
}

/* A second Ctrl-C ends everything at once, also if a failure is ending the job. */
bool sim_is_insisting(const struct sim_world *w, int signo)
{
    const struct sim_witness *x = &w->witness;

    return signo == SIGINT && (x->norders > 0 || (x->decided && !x->restarting && !x->cut_off));
}

void sim_check_insisted(struct sim_world *w)
{
    check_all_killed(w, "although the user insists");
    expect(w, 2 * PATIENCE_MS + LATE_MS, expect_end);
}

/* If the user insists, dtrun does not wait for a reader of its output. */
void sim_check_left(struct sim_world *w)
{
    if (!w->witness.drops_output || w->ended)
        return;
    for (const struct sim_conn *c = w->conns; c; c = c->next) {
        if (c->open || (c->given_up && !c->hung_up))
            return;
    }
    sim_broken(w, "no connection is left, the user insists, and dtrun still waits");
}

/* ---- Ctrl-Z ---- */

void sim_check_suspended(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (!x->paused_ns)
        sim_broken(w, "dtrun stops itself, and nobody has asked for that");
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (c && c->open && c->started == x->generation && c->started &&
            w->now_ns - x->paused_ns < PAUSE_MS * SIM_MS &&
            (c->queried_ns < x->paused_ns || c->answered != c->queried))
            sim_broken(w, "dtrun stops itself, and %s has not stopped its ranks", c->host->name);
    }
    x->paused_ns = 0;
}
