/* Signals from a user go to dtrun only. Those from a batch system go to dtrun, agents and ranks
 * alike, and dtrun must act on them once. Ranks get once what dtrun passes on. Those of a host that
 * shuts down go to its agent (departures.c). */
#include <signal.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "tests/sim/world.h"

enum {
    ECHO_MS = 1000,
    LATE_MS = 10000,  /* how much later than others an agent may report a signal */
    APART_MS = 20000, /* signals this far apart are never mistaken for each other */
};

bool sim_ends_jobs(int signo)
{
    return signo == SIGINT || signo == SIGTERM || signo == SIGHUP;
}

static bool is_passed_on(int signo)
{
    return signo == SIGUSR1 || signo == SIGUSR2;
}

static bool is_running(const struct sim_world *w)
{
    return w->witness.generation > 0 && w->witness.went == w->witness.generation &&
           !w->witness.decided && w->witness.norders == 0;
}

static uint64_t bit(int signo)
{
    return UINT64_C(1) << signo;
}

/* The lowest signal of the set that ends jobs, or 0. */
static int find_end(uint64_t signals)
{
    for (int signo = 1; signo < 64; signo++) {
        if ((signals & bit(signo)) && sim_ends_jobs(signo))
            return signo;
    }
    return 0;
}

/* ---- what dtrun does with signals ---- */

static void check_all_have_it(struct sim_world *w, int signo)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (c && c->open && c->started == w->witness.generation &&
            (c->round != w->witness.round || !(c->signalled & bit(signo))))
            sim_broken(w, "signal %d is not passed on to %s", signo, c->host->name);
    }
}

static bool has_signal(const struct sim_world *w)
{
    for (size_t i = 0; i < w->witness.norders; i++) {
        if (w->witness.orders[i].signo)
            return true;
    }
    return false;
}

/* Acts on one signal that ends the job, or else on all. act passes them to the engine. sure: dtrun
 * cannot take it for an earlier one. */
static void act_on(struct sim_world *w, uint64_t signals, bool sure,
                   void (*act)(struct sim_world *w, uint64_t signals))
{
    bool running = is_running(w);
    int signo = find_end(signals);
    bool insisting = sim_is_insisting(w, signo);

    w->witness.insisted |= insisting;
    w->witness.drops_output |= insisting && has_signal(w);
    if (signo)
        sim_oracle_order(
            w, (struct sim_order){ .signo = signo, .code = DT_EXIT_SIGNAL + signo, .late = true });
    w->witness.round++;
    act(w, signals);
    if (insisting && sure)
        sim_check_insisted(w);
    for (signo = 1; signo < 64 && running; signo++) {
        if ((signals & bit(signo)) && is_passed_on(signo) && !find_end(signals))
            check_all_have_it(w, signo);
    }
}

void sim_check_signal(struct sim_world *w, struct sim_conn *c, int signo)
{
    if (signo == SIGSTOP && c->paused)
        sim_broken(w, "ranks on %s are stopped twice", c->host->name);
    if (signo == SIGSTOP || signo == SIGCONT)
        c->paused = signo == SIGSTOP;
    if (!is_passed_on(signo))
        return;
    if (c->went != w->witness.generation)
        sim_broken(w, "signal %d is passed on to ranks of %s that wait for GO", signo,
                   c->host->name);
    if (w->witness.norders > 0)
        sim_broken(w, "signal %d is passed on to %s although dtrun is to end", signo,
                   c->host->name);
    if (c->round != w->witness.round)
        c->signalled = 0;
    c->round = w->witness.round;
    if (c->signalled & bit(signo))
        sim_broken(w, "signal %d is passed on to %s twice", signo, c->host->name);
    c->signalled |= bit(signo);
}

/* ---- several signals that count as one ---- */

static void note_acted(struct sim_world *w, uint64_t signals)
{
    for (int signo = 1; signo < 64; signo++) {
        if (signals & bit(signo))
            w->witness.acted_ns[signo] = w->now_ns;
    }
    w->witness.gathered &= ~signals;
    w->witness.doubtful &= ~signals;
    for (uint32_t i = 0; i < w->witness.nbatch; i++) {
        struct sim_batch *b = &w->witness.batch[i];

        if (b->heard && !b->acted_ns && (signals & bit(b->signo)))
            b->acted_ns = w->now_ns;
    }
}

/* Notes one of these signals before the engine gets it. Returns whether it counts. */
static bool note_signal(struct sim_world *w, int signo)
{
    struct sim_witness *x = &w->witness;
    bool echo = x->acted_ns[signo] && w->now_ns - x->acted_ns[signo] < ECHO_MS * SIM_MS;

    if (!echo)
        x->gathered |= bit(signo);
    return !echo;
}

/* Whether no other signal of the same number was sent at about that time. */
static bool is_unmistakable(const struct sim_witness *x, const struct sim_batch *b)
{
    for (uint32_t i = 0; i < x->nbatch; i++) {
        const struct sim_batch *other = &x->batch[i];
        uint64_t apart_ns =
            other->sent_ns > b->sent_ns ? other->sent_ns - b->sent_ns : b->sent_ns - other->sent_ns;

        if (other != b && other->signo == b->signo && apart_ns < APART_MS * SIM_MS)
            return false;
    }
    return true;
}

int sim_signal_reported(const struct sim_world *w, const struct sim_conn *c)
{
    return w->witness.batch[c->batch[c->reports]].signo;
}

void sim_reported(struct sim_world *w, struct sim_conn *c, bool for_host)
{
    struct sim_batch *b = &w->witness.batch[c->batch[c->reports++]];

    if (for_host)
        return;
    /* dtrun has acted on it already: another agent was faster. */
    if (b->acted_ns && w->now_ns - b->acted_ns < LATE_MS * SIM_MS &&
        is_unmistakable(&w->witness, b))
        return;
    b->heard |= note_signal(w, b->signo);
    if (!is_unmistakable(&w->witness, b))
        w->witness.doubtful |= bit(b->signo);
}

bool sim_is_about_to_end(const struct sim_world *w)
{
    return find_end(w->witness.gathered) != 0;
}

static void expire_gather_timer(struct sim_world *w, uint64_t signals)
{
    (void)signals;
    dt_job_timer(w->job, DT_TIMER_GATHER);
}

void sim_signal_gathered(struct sim_world *w)
{
    uint64_t signals = w->witness.gathered;
    bool sure = !(w->witness.doubtful & bit(find_end(signals)));

    if (!signals)
        sim_broken(w, "dtrun acts on a signal that was never sent");
    note_acted(w, signals);
    act_on(w, signals, sure, expire_gather_timer);
}

/* ---- which processes get a signal ---- */

static void tell_engine(struct sim_world *w, uint64_t signals)
{
    for (int signo = 1; signo < 64; signo++) {
        if (signals & bit(signo))
            dt_job_signal(w->job, signo);
    }
}

void sim_signal(struct sim_world *w, int signo)
{
    bool from_keyboard = signo == SIGINT || signo == SIGTSTP;

    sim_trace(w, "dtrun gets signal %d", signo);
    if (signo == SIGTSTP && !w->witness.paused_ns)
        w->witness.paused_ns = w->now_ns;
    if (w->s->batch && !from_keyboard) {
        note_signal(w, signo);
        dt_job_signal(w->job, signo);
        return;
    }
    if (w->s->batch)
        note_acted(w, bit(signo));
    act_on(w, bit(signo), true, tell_engine);
}

static void signal_agent(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    int signo = w->witness.batch[e->n].signo;
    union dt_msg *m;

    if (!sim_agent_acts(w, e))
        return;
    m = dt_xcalloc(1, sizeof *m);
    m->signalled.signo = signo;
    a->conn->batch[a->conn->reported++] = (uint8_t)e->n;
    sim_send(w, a, DT_MSG_SIGNALLED, m);
    for (uint32_t i = 0; i < a->n && sim_ends_jobs(signo) && e->type; i++)
        sim_rank_signal(w, a, &a->ranks[i], signo);
}

static void signal_dtrun(struct sim_world *w, struct sim_event *e)
{
    sim_signal(w, w->witness.batch[e->n].signo);
}

void sim_host_signal(struct sim_world *w, struct sim_host *h, int signo, bool to_ranks)
{
    struct sim_agent *a = h->conn ? h->conn->agent : NULL;

    if (!a || !a->alive)
        return;
    w->witness.batch[w->witness.nbatch] =
        (struct sim_batch){ .signo = signo, .sent_ns = w->now_ns };
    sim_later(w, 0,
              (struct sim_event){
                  .act = signal_agent, .who = a, .n = w->witness.nbatch++, .type = to_ranks });
}

void sim_batch_signal(struct sim_world *w, int signo, bool to_dtrun)
{
    const struct sim_event e = { .n = w->witness.nbatch };

    w->witness.batch[w->witness.nbatch++] =
        (struct sim_batch){ .signo = signo, .sent_ns = w->now_ns };
    for (struct sim_agent *a = w->agents; a; a = a->next) {
        struct sim_event there = e;

        there.act = signal_agent;
        there.who = a;
        there.type = 1; /* its ranks, too */
        sim_later(w, sim_below(&w->network, 100) * SIM_MS, there);
    }
    if (to_dtrun) {
        struct sim_event here = e;

        here.act = signal_dtrun;
        here.for_engine = true;
        sim_later(w, sim_below(&w->network, 100) * SIM_MS, here);
    }
}
