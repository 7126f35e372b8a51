/* Hosts that cannot reach each other: what agents answer, and what must follow. */
#include <errno.h>
#include <string.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "tests/sim/world.h"

static bool are_apart(const struct sim_world *w, const struct sim_host *a, const struct sim_host *b)
{
    return w->now_ns < a->apart_until[b->index] || w->now_ns < b->apart_until[a->index];
}

static struct sim_host *host_at(struct sim_world *w, const struct dt_msg_target *t)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        if (strcmp(w->hosts[i].addr, t->addrs.v[0]) == 0)
            return &w->hosts[i];
    }
    return NULL;
}

void sim_agent_on_probe(struct sim_world *w, struct sim_agent *a, const struct dt_msg_probe *m)
{
    const struct dt_msg_target *targets = m->targets.v;
    struct dt_msg_reached *results = dt_xcalloc(m->targets.n, sizeof *results);
    union dt_msg *reach = dt_xcalloc(1, sizeof *reach);

    for (uint32_t i = 0; i < m->targets.n; i++) {
        results[i] = (struct dt_msg_reached){ .node = targets[i].node, .state = DT_REACH_OK };
        /* Worlds of more hosts have no such faults. */
        if (w->s->hosts <= SIM_HOSTS_MAX && are_apart(w, a->host, host_at(w, &targets[i]))) {
            results[i].state = DT_REACH_CONNECT;
            results[i].error = ETIMEDOUT;
        }
    }
    reach->reach = (struct dt_msg_reach){ m->generation, m->all, { results, m->targets.n } };
    sim_send(w, a, DT_MSG_REACH, reach);
}

static void note_apart(struct sim_world *w, struct sim_host *caller, uint32_t node)
{
    caller->apart = w->witness.apart = true;
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];

        h->apart |= h->generation == w->witness.generation && h->node == node;
    }
}

/* Notes an answer before the engine gets it. The last answer decides what must follow, unless
 * something else is already going to end this generation. */
void sim_check_reach(struct sim_world *w, struct sim_conn *c, const struct dt_msg_reach *m)
{
    struct sim_witness *x = &w->witness;
    const struct dt_msg_reached *results = m->results.v;

    if (m->generation != x->generation)
        return;
    for (uint32_t i = 0; i < m->results.n; i++) {
        if (results[i].state != DT_REACH_OK)
            note_apart(w, c->host, results[i].node);
    }
    if (++x->reached < x->nodes || !x->apart || x->ncauses || x->decided || x->norders)
        return;
    if (x->generation == 1 || w->s->stop_on_loss)
        sim_oracle_refusal(w, DT_EXIT_LAUNCH);
    else
        x->cut_off = true;
}
