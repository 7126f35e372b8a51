/* --inject: agents carry out the faults that START lists, and each is triggered once in a job. */
#include <signal.h>
#include <string.h>

#include "launcher/base/inject.h"
#include "launcher/base/mem.h"
#include "tests/sim/world.h"

static struct dt_inject parse(struct sim_world *w, uint32_t i)
{
    struct dt_error err = { 0 };
    struct dt_inject f;

    if (dt_inject_parse(&f, w->s->inject[i], &err) < 0)
        sim_broken(w, "--inject %s: %s", w->s->inject[i], err.text);
    return f;
}

/* ---- which faults are due ---- */

static bool is_due(struct sim_world *w, uint32_t i, const struct dt_msg_start *m)
{
    struct dt_inject f = parse(w, i);

    return !w->triggered[i] && (f.restart < 0 || f.restart == w->witness.restarts.n) &&
           dt_inject_concerns(&f, m->node_rank, &m->ranks);
}

/* START to this host must list exactly the faults that may be triggered there. */
void sim_check_injections(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->s->ninject; i++) {
        c->injected[i] = is_due(w, i, m);
        if (c->injected[i] && (n >= m->inject.n || strcmp(m->inject.v[n], w->s->inject[i]) != 0))
            sim_broken(w, "START to %s lacks --inject %s", c->host->name, w->s->inject[i]);
        n += c->injected[i];
    }
    if (m->inject.n != n)
        sim_broken(w, "START to %s lists %u injected faults, not %u", c->host->name, m->inject.n,
                   n);
}

void sim_check_triggered(struct sim_world *w, const char *fault)
{
    for (uint32_t i = 0; i < w->s->ninject; i++)
        w->triggered[i] |= strcmp(w->s->inject[i], fault) == 0;
}

/* An agent killed by a fault can report nothing. dtrun takes the loss of a host whose ranks may run
 * for the fault. */
void sim_check_injected_loss(struct sim_world *w, struct sim_conn *c)
{
    if (c->went != c->started)
        return;
    for (uint32_t i = 0; i < w->s->ninject; i++) {
        struct dt_inject f = parse(w, i);

        if (!c->injected[i] || w->triggered[i] || !dt_inject_takes_all_ranks(&f))
            continue;
        w->triggered[i] = true;
        c->host->taken |= f.kind == DT_INJECT_HOST;
        c->host->lost |= c->host->taken;
    }
}

/* ---- the agent's side ---- */

static void tell(struct sim_world *w, struct sim_agent *a, uint32_t i)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m);

    m->triggered.fault = dt_xstrdup(w->s->inject[i]);
    sim_send(w, a, DT_MSG_TRIGGERED, m);
}

static void trigger(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    struct dt_inject f = parse(w, (uint32_t)e->n);

    if (!a->alive || a->generation != e->epoch || a->phase != SIM_RUNNING || a->stopping ||
        a->in_doubt || a->held || w->now_ns < a->host->frozen_until)
        return;
    sim_trace(w, "--inject %s is triggered", w->s->inject[e->n]);
    if (dt_inject_takes_all_ranks(&f)) {
        sim_agent_die(w, a);
        sim_conn_end(w, a->conn, "it was killed");
        return;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->ranks[i].rank != f.rank || !a->ranks[i].alive)
            continue;
        tell(w, a, (uint32_t)e->n);
        sim_rank_fail(w, a, &a->ranks[i], -1, SIGKILL);
        return;
    }
}

/* Called when the agent's ranks run. */
void sim_agent_inject(struct sim_world *w, struct sim_agent *a)
{
    for (uint32_t i = 0; i < w->s->ninject; i++) {
        struct dt_inject f = parse(w, i);

        if (a->conn->injected[i])
            sim_later(
                w, f.after_ms > 0 ? (uint64_t)f.after_ms * SIM_MS : SIM_MS,
                (struct sim_event){ .act = trigger, .who = a, .n = i, .epoch = a->generation });
    }
}
