/* Hosts that cannot reach each other: what agents answer, and what must follow. */
#include <errno.h>
#include <string.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "tests/sim/world.h"

/* ---- what agents answer ---- */

static bool are_apart(const struct sim_world *w, const struct sim_host *a, const struct sim_host *b)
{
    return w->now_ns < a->apart_until[b->index] || w->now_ns < b->apart_until[a->index];
}

/* While a host's networks are divided, hosts with odd numbers do not reach it in its first network.
 * If the division is complete, the others do not reach it in its second one. */
static bool does_reach(const struct sim_world *w, const struct sim_host *caller,
                       const struct sim_host *target, uint32_t network)
{
    bool divided = w->now_ns < target->divided_until;
    bool odd = caller->index % 2;

    return !are_apart(w, caller, target) &&
           !(divided && (network == 0 ? odd : !odd && target->divided_completely));
}

static const struct sim_host *host_at(const struct sim_world *w, const char *addr,
                                      uint32_t *network)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        for (*network = 0; *network < SIM_NETWORKS; ++*network) {
            if (strcmp(w->hosts[i].addrs[*network], addr) == 0)
                return &w->hosts[i];
        }
    }
    return NULL;
}

static struct dt_msg_reached try_address(const struct sim_world *w, const struct sim_host *caller,
                                         const struct dt_msg_target *t, uint32_t addr)
{
    uint32_t network = 0;
    const struct sim_host *target;

    if (w->s->hosts > SIM_HOSTS_MAX) /* such worlds have no such faults */
        return (struct dt_msg_reached){ .node = t->node, .state = DT_REACH_OK };
    target = host_at(w, t->addrs.v[addr], &network);
    if (does_reach(w, caller, target, network))
        return (struct dt_msg_reached){ .node = t->node, .addr = addr, .state = DT_REACH_OK };
    return (struct dt_msg_reached){
        .node = t->node, .addr = addr, .state = DT_REACH_CONNECT, .error = ETIMEDOUT
    };
}

/* "The first one that works ends the search", unless all are asked for. */
void sim_agent_on_probe(struct sim_world *w, struct sim_agent *a, const struct dt_msg_probe *m)
{
    const struct dt_msg_target *targets = m->targets.v;
    struct dt_msg_reached *results =
        dt_xcalloc((size_t)m->targets.n * SIM_NETWORKS, sizeof *results);
    union dt_msg *reach = dt_xcalloc(1, sizeof *reach);
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->targets.n; i++) {
        bool found = false;

        for (uint32_t k = 0; k < targets[i].addrs.n && (m->all || !found); k++) {
            results[n] = try_address(w, a->host, &targets[i], k);
            found |= results[n++].state == DT_REACH_OK;
        }
    }
    reach->reach = (struct dt_msg_reach){ m->generation, m->all, { results, n } };
    sim_send(w, a, DT_MSG_REACH, reach);
}

/* ---- what must follow ---- */

void sim_check_probe(struct sim_world *w, struct sim_conn *c, const struct dt_msg_probe *m)
{
    struct sim_reach *r = &w->witness.reach;

    if (m->generation == w->witness.generation && m->all && !r->all)
        sim_broken(w, "%s is asked for all addresses, and there is no need", c->host->name);
    r->asked += m->generation == w->witness.generation && m->all;
}

static struct sim_host *host_of_node(struct sim_world *w, uint32_t node)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        if (w->hosts[i].generation == w->witness.generation && w->hosts[i].node == node)
            return &w->hosts[i];
    }
    return NULL;
}

/* Whether the host reaches all its targets. Notes at which addresses it does. */
static bool note_answer(struct sim_world *w, struct sim_host *caller, const struct dt_msg_reach *m)
{
    const struct dt_msg_reached *results = m->results.v;
    uint8_t masks[SIM_HOSTS_MAX] = { 0 };
    bool complete = true;

    for (uint32_t i = 0; i < m->results.n; i++) {
        if (results[i].state == DT_REACH_OK)
            masks[results[i].node] |= (uint8_t)(1 << results[i].addr);
    }
    for (uint32_t i = 0; i < m->results.n; i++) {
        struct sim_host *target = host_of_node(w, results[i].node);

        target->common &= masks[results[i].node];
        if (masks[results[i].node])
            continue;
        caller->apart = target->apart = true;
        complete = false;
    }
    return complete;
}

static void forget_answers(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts; i++)
        w->hosts[i].common = UINT8_MAX;
}

void sim_reach_started(struct sim_world *w)
{
    w->witness.reach = (struct sim_reach){ 0 };
    forget_answers(w);
}

/* Marks the hosts whose callers do not agree on an address. Returns whether there is any. */
static bool is_any_divided(struct sim_world *w, bool mark)
{
    bool divided = false;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];

        if (h->generation != w->witness.generation || h->common)
            continue;
        divided = true;
        h->apart |= mark;
    }
    return divided;
}

/* Notes an answer before the engine gets it. The last answer decides what must follow, unless
 * something else is already going to end this generation. */
void sim_check_reach(struct sim_world *w, struct sim_conn *c, const struct dt_msg_reach *m)
{
    struct sim_witness *x = &w->witness;
    struct sim_reach *r = &x->reach;

    if (m->generation != x->generation || m->all != r->all || w->s->hosts > SIM_HOSTS_MAX)
        return;
    r->cut |= !note_answer(w, c->host, m);
    if (++r->answers < x->nodes || x->ncauses || x->decided || x->norders)
        return;
    if (!r->cut && !is_any_divided(w, r->all))
        return;
    if (!r->cut && !r->all) {
        *r = (struct sim_reach){ .all = true };
        forget_answers(w);
    } else if (x->generation == 1 || w->s->stop_on_loss) {
        sim_oracle_refusal(w, DT_EXIT_LAUNCH);
    } else {
        x->cut_off = true;
        sim_recovery_put_off(w);
    }
}

/* If the answers to the first question left hosts divided, all hosts are asked for all addresses.
 */
void sim_check_reach_handled(struct sim_world *w)
{
    const struct sim_reach *r = &w->witness.reach;

    if (r->all && r->asked != w->witness.nodes && !w->witness.ncauses && !w->witness.decided &&
        !w->witness.norders)
        sim_broken(w, "%u hosts are asked for all addresses, not %u", r->asked, w->witness.nodes);
}
