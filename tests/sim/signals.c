/* Signals: of a user, to dtrun; of a batch system, to dtrun, agents and ranks alike, where dtrun is
 * to act once for all of them. Ranks get what dtrun passes on once. */
#include <signal.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "tests/sim/world.h"

enum { ECHO_MS = 1000 };

static bool ends_jobs(int signo)
{
    return signo == SIGINT || signo == SIGTERM || signo == SIGHUP;
}

static bool is_passed_on(int signo)
{
    return signo == SIGUSR1 || signo == SIGUSR2;
}

static bool is_running(const struct sim_world *w)
{
    return w->witness.generation > 0 && !w->witness.decided && w->witness.norders == 0;
}

/* ---- what dtrun makes of a signal ---- */

static void check_all_have_it(struct sim_world *w, int signo)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (c && c->open && c->started == w->witness.generation && c->signalled != w->witness.round)
            sim_broken(w, "signal %d is not passed on to %s", signo, c->host->name);
    }
}

/* act tells the engine. */
static void act_upon(struct sim_world *w, int signo, void (*act)(struct sim_world *w, int signo))
{
    bool passed_on = is_passed_on(signo) && is_running(w);

    if (ends_jobs(signo))
        sim_oracle_order(
            w, (struct sim_order){ .signo = signo, .code = DT_EXIT_SIGNAL + signo, .late = true });
    w->witness.round++;
    act(w, signo);
    if (passed_on)
        check_all_have_it(w, signo);
}

void sim_check_signal(struct sim_world *w, struct sim_conn *c, int signo)
{
    if (!is_passed_on(signo))
        return;
    if (c->signalled == w->witness.round)
        sim_broken(w, "signal %d is passed on to %s twice", signo, c->host->name);
    c->signalled = w->witness.round;
}

/* ---- many that are one ---- */

/* Notes one of them, before the engine is told. */
void sim_signalled(struct sim_world *w, int signo)
{
    struct sim_witness *x = &w->witness;
    bool echo = x->acted == signo && w->now_ns - x->acted_ns < ECHO_MS * SIM_MS;

    if (!echo && (!x->gathered || ends_jobs(signo)))
        x->gathered = signo;
}

bool sim_is_about_to_end(const struct sim_world *w)
{
    return ends_jobs(w->witness.gathered);
}

static void ring(struct sim_world *w, int signo)
{
    (void)signo;
    dt_job_timer(w->job, DT_TIMER_GATHER);
}

void sim_signal_gathered(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;
    int signo = x->gathered;

    if (!signo)
        sim_broken(w, "dtrun acts upon a signal that nobody has sent");
    x->acted = signo;
    x->acted_ns = w->now_ns;
    x->gathered = 0;
    act_upon(w, signo, ring);
}

/* ---- who gets it ---- */

static void tell_engine(struct sim_world *w, int signo)
{
    dt_job_signal(w->job, signo);
}

void sim_signal(struct sim_world *w, int signo)
{
    bool from_keyboard = signo == SIGINT || signo == SIGTSTP;

    sim_trace(w, "dtrun gets signal %d", signo);
    if (w->s->batch && !from_keyboard) {
        sim_signalled(w, signo);
        dt_job_signal(w->job, signo);
    } else {
        act_upon(w, signo, tell_engine);
    }
}

static void reach_agent(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    union dt_msg *m;

    if (!a->alive)
        return;
    if (w->now_ns < a->host->frozen_until) {
        if (a->host->frozen_until != UINT64_MAX)
            sim_queue_put_off(&w->queue, e, a->host->frozen_until);
        return;
    }
    m = dt_xcalloc(1, sizeof *m);
    m->signalled.signo = (int)e->n;
    sim_send(w, a, DT_MSG_SIGNALLED, m);
    for (uint32_t i = 0; i < a->n && ends_jobs((int)e->n); i++)
        sim_rank_signal(w, a, &a->ranks[i], (int)e->n);
}

static void reach_dtrun(struct sim_world *w, struct sim_event *e)
{
    sim_signal(w, (int)e->n);
}

void sim_batch_signal(struct sim_world *w, int signo, bool to_dtrun)
{
    const struct sim_event e = { .n = (uint64_t)signo };

    for (struct sim_agent *a = w->agents; a; a = a->next) {
        struct sim_event there = e;

        there.act = reach_agent;
        there.who = a;
        sim_later(w, sim_below(&w->network, 100) * SIM_MS, there);
    }
    if (to_dtrun) {
        struct sim_event here = e;

        here.act = reach_dtrun;
        here.for_engine = true;
        sim_later(w, sim_below(&w->network, 100) * SIM_MS, here);
    }
}
