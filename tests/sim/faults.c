/* Carries out the faults of a scenario when they are due. */
#include <errno.h>
#include <signal.h>

#include "launcher/base/error.h"
#include "tests/sim/world.h"

/* Faults may overlap. Messages that wait for the end of one keep their order. */
static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t until(const struct sim_world *w, const struct sim_fault *f)
{
    return f->ns == UINT64_MAX ? UINT64_MAX : w->now_ns + f->ns;
}

static struct sim_agent *agent_of(struct sim_host *h)
{
    return h->conn && h->conn->agent && h->conn->agent->alive ? h->conn->agent : NULL;
}

/* Whether it is a failure that a rank exits with 0 too early, and nothing else follows from it. */
static bool may_leave(const struct sim_world *w)
{
    return !w->s->servers && (w->s->fences || (w->s->linked && !w->s->exit_grace_s));
}

static void trigger_at_rank(struct sim_world *w, const struct sim_fault *f)
{
    struct sim_agent *a;
    struct sim_rank *r = sim_rank_find(w, f->rank, &a);

    if (!r || a->phase != SIM_RUNNING || a->stopping || a->in_doubt || r->stopped ||
        w->now_ns < a->host->frozen_until)
        return;
    switch (f->kind) {
    case SIM_RANK_KILLED:
        sim_rank_fail(w, a, r, -1, f->code);
        break;
    case SIM_RANK_EXITS:
        sim_rank_fail(w, a, r, f->code || may_leave(w) ? f->code : 1, 0);
        break;
    case SIM_CALL_FAILS:
        sim_call_fails(w, a, r, f->code, f->ns % 2 ? SIM_OTHER : SIM_WORLD);
        break;
    default:
        sim_rank_hangs(w, a, r);
    }
}

/* Kills every agent on the host, even if its connection has ended. */
static void crash(struct sim_world *w, struct sim_host *h)
{
    for (struct sim_agent *a = w->agents; a; a = a->next) {
        if (a->host == h && a->alive)
            sim_agent_die(w, a);
    }
}

static void deafen(struct sim_world *w, struct sim_event *e)
{
    struct sim_conn *c = e->who;

    (void)w;
    c->dead[SIM_TO_AGENT] = true;
}

static void trigger_at_host(struct sim_world *w, const struct sim_fault *f)
{
    struct sim_host *h = &w->hosts[f->host];
    struct sim_agent *a = agent_of(h);

    switch (f->kind) {
    case SIM_AGENT_DIES:
        if (a) {
            sim_agent_die(w, a);
            sim_conn_end(w, a->conn, "it was killed");
        }
        break;
    case SIM_HOST_VANISHES:
        crash(w, h);
        if (h->conn) { /* the end of the connection is not sent */
            h->conn->over = true;
            h->conn->lost_ns = w->now_ns;
        }
        h->down_until = until(w, f);
        break;
    case SIM_LINK_BREAKS:
        if (h->conn && h->conn->agent)
            sim_conn_break(w, h->conn);
        break;
    case SIM_DTRUN_LOSES:
        if (h->conn && h->conn->agent) {
            sim_conn_end(w, h->conn, "it broke");
            h->conn->dead[SIM_TO_AGENT] = true;
        }
        if (f->code)
            h->refuses_until = until(w, f);
        break;
    case SIM_AGENT_LOSES:
        if (h->conn && h->conn->agent) {
            h->conn->dead[SIM_TO_ENGINE] = true;
            h->conn->lost_ns = w->now_ns;
            sim_conn_hang_up(w, h->conn);
        }
        break;
    case SIM_LINK_DIES:
        if (!h->conn)
            break;
        h->conn->dead[SIM_TO_ENGINE] = true;
        h->conn->lost_ns = w->now_ns;
        sim_later(w, (uint64_t)f->code * SIM_MS,
                  (struct sim_event){ .act = deafen, .who = h->conn });
        break;
    case SIM_CUT_OFF:
        if (h->cut_until <= w->now_ns)
            h->cut_from = w->now_ns;
        h->cut_until = later(h->cut_until, until(w, f));
        break;
    case SIM_HOST_FREEZES:
        h->frozen_until = later(h->frozen_until, w->now_ns + f->ns);
        break;
    case SIM_LINK_SLOW:
        h->slow_until = w->now_ns + f->ns;
        break;
    case SIM_HOSTS_APART:
        if (w->s->hosts <= SIM_HOSTS_MAX)
            h->apart_until[(f->host + (unsigned)f->code) % w->s->hosts] = until(w, f);
        break;
    case SIM_HOST_DIVIDED:
        h->divided_until = until(w, f);
        h->divided_completely = f->code;
        break;
    case SIM_HOST_ENDS:
        sim_host_signal(w, h, f->code, f->ns % 2);
        break;
    case SIM_SPAWN_FAILS:
        h->spawn_fails = true;
        h->spawn_code = f->code;
        break;
    default:
        if (a && (a->phase == SIM_RUNNING || a->phase == SIM_SPAWNING))
            sim_agent_repeat(w, a);
    }
}

static void give_signal(struct sim_world *w, struct sim_event *e)
{
    sim_signal(w, (int)e->n);
}

static void fail_output(struct sim_world *w, struct sim_event *e)
{
    int code = e->n == EPIPE ? DT_EXIT_SIGNAL + SIGPIPE : DT_EXIT_LAUNCH;

    sim_oracle_order(w, (struct sim_order){ .code = code, .late = true });
    dt_job_output_failed(w->job, "standard output", (int)e->n);
}

static void stand_up(struct sim_world *w, struct sim_event *e)
{
    w->standing_until = w->standing_until > w->now_ns + e->n ? w->standing_until : w->now_ns + e->n;
}

static void trigger(struct sim_world *w, struct sim_event *e)
{
    const struct sim_fault *f = e->who;

    if (w->ended)
        return;
    if (w->trace) {
        printf("              fault at ");
        sim_fault_print(f, stdout);
    }
    if (f->kind == SIM_OUTPUT_FAILS)
        sim_later(
            w, 0,
            (struct sim_event){ .act = fail_output, .n = (uint64_t)f->code, .for_engine = true });
    else if (f->kind == SIM_BATCH_SIGNAL)
        sim_batch_signal(w, f->code, f->ns % 2);
    else if (f->kind == SIM_SIGNAL)
        sim_later(
            w, 0,
            (struct sim_event){ .act = give_signal, .n = (uint64_t)f->code, .for_engine = true });
    else if (f->kind == SIM_CHECKPOINTS_LOST)
        w->durable = f->code || w->durable < 2 ? -1 : w->durable / 2;
    else if (f->kind == SIM_DTRUN_STANDS)
        sim_later(w, 0, (struct sim_event){ .act = stand_up, .n = f->ns });
    else if (f->kind <= SIM_RANK_HANGS)
        trigger_at_rank(w, f);
    else
        trigger_at_host(w, f);
}

/* In a large job one rank in a hundred is killed, a tenth of these in each round. */
static void trigger_many(struct sim_world *w, struct sim_event *e)
{
    uint32_t every = 100 * SIM_ROUNDS;

    for (struct sim_agent *a = w->agents; a; a = a->next) {
        for (uint32_t i = 0; i < a->n; i++) {
            if (a->phase == SIM_RUNNING && !a->stopping && a->ranks[i].alive &&
                a->ranks[i].rank % every == e->n * 100)
                sim_rank_fail(w, a, &a->ranks[i], -1, SIGKILL);
        }
    }
    if (e->n + 1 < SIM_ROUNDS)
        sim_later(w, w->s->work_ns / SIM_ROUNDS,
                  (struct sim_event){ .act = trigger_many, .n = e->n + 1 });
}

void sim_faults_plan(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->nfaults; i++) {
        const struct sim_fault *f = &w->s->faults[i];

        sim_later(w, f->at_ns,
                  (struct sim_event){ .act = trigger, .who = (void *)(uintptr_t)f, .n = f->kind });
    }
    if (w->s->hosts > SIM_HOSTS_MAX)
        sim_later(w, w->s->work_ns / SIM_ROUNDS / 2, (struct sim_event){ .act = trigger_many });
}
