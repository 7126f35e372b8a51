/* The network between the hosts of a generation: which addresses to try, what the agents find, and
 * what ranks are told. */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"

enum { NAMED_MAX = 8 }; /* pairs of hosts that are named */

static struct dt_hostlink *link_of(const struct dt_job *j, uint32_t node)
{
    return j->core.links.v[j->core.plan.nodes[node].host];
}

static const char *name_of(const struct dt_job *j, uint32_t node)
{
    return dt_core_host_name(&j->core, j->core.plan.nodes[node].host);
}

static void say_unusable(const struct dt_job *j, uint32_t node)
{
    struct dt_strbuf b = { 0 };

    dt_hostnet_say_none(&b, &j->net, node);
    dt_say("%s: %s", name_of(j, node), dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

void dt_job_free_network(struct dt_job *j)
{
    dt_hostnet_free(&j->net);
}

/* One host alone is independent of its network, unless told otherwise. */
static bool is_alone(const struct dt_job *j)
{
    return j->net.n == 1 && !j->core.config->iface;
}

bool dt_job_list_addresses(struct dt_job *j)
{
    bool usable = true;

    dt_job_free_network(j);
    dt_hostnet_init(&j->net, (uint32_t)j->core.plan.nnodes, j->core.config->iface);
    for (uint32_t i = 0; i < j->net.n; i++) {
        const struct dt_hostlink *h = link_of(j, i);

        j->net.nodes[i] = (struct dt_hostnet_node){
            .name = name_of(j, i),
            .given = j->core.config->hosts->v[h->host].addr,
            .addr = h->addr,
            .peer_addr = h->peer_addr,
            .netaddrs = &h->netaddrs,
            .port = h->probe_port,
        };
    }
    for (uint32_t i = 0; i < j->net.n; i++) {
        if (dt_hostnet_candidates(&j->net, i) || is_alone(j))
            continue;
        say_unusable(j, i);
        usable = false;
    }
    return usable;
}

static void send_probe(struct dt_job *j, uint32_t node, bool all)
{
    struct dt_msg_target targets[DT_REACH_TARGETS];
    struct dt_msg_probe m = { .generation = j->core.generation,
                              .all = all,
                              .bytes = DT_REACH_BYTES };

    memcpy(m.secret, j->secret, sizeof m.secret);
    dt_hostnet_probe(&j->net, node, &m, targets);
    dt_hostlink_send(link_of(j, node), DT_MSG_PROBE, &m);
    link_of(j, node)->probing = true;
    dt_hostnet_free_targets(&m);
}

static void probe(struct dt_job *j, bool all)
{
    j->probing_all = all;
    j->unanswered = j->net.n;
    for (uint32_t i = 0; i < j->net.n; i++)
        send_probe(j, i, all);
}

void dt_job_probe(struct dt_job *j)
{
    j->network_is_known = j->net.n == 1;
    for (uint32_t i = 0; i < j->net.n; i++)
        link_of(j, i)->probing = false;
    if (!j->network_is_known)
        probe(j, false);
}

static void say_divided(const struct dt_job *j, uint32_t target)
{
    struct dt_strbuf b = { 0 };

    dt_hostnet_say_divided(&b, &j->net, target);
    dt_say("%s %s", name_of(j, target), dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void say_cut(const struct dt_job *j, uint32_t caller, uint32_t target)
{
    struct dt_strbuf b = { 0 };

    dt_hostnet_say_cut(&b, &j->net, caller, target);
    dt_say("%s %s", name_of(j, caller), dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static uint32_t say_all_cut(const struct dt_job *j)
{
    uint32_t targets[DT_REACH_TARGETS], n = 0;

    for (uint32_t i = 0; i < j->net.n; i++) {
        for (uint32_t k = dt_reach_targets(i, j->net.n, targets); k-- > 0;) {
            if (dt_reach_mask(j->net.reach, i, targets[k]))
                continue;
            if (n++ < NAMED_MAX)
                say_cut(j, i, targets[k]);
        }
    }
    return n;
}

static void say_broken(const struct dt_job *j, enum dt_reach_outcome outcome)
{
    uint32_t n = outcome == DT_REACH_CUT ? say_all_cut(j) : 0;

    for (uint32_t i = 0; i < j->net.n && outcome == DT_REACH_DIVIDED; i++) {
        if (j->net.reach[i].chosen == DT_REACH_NOWHERE)
            say_divided(j, i);
    }
    if (n > NAMED_MAX)
        dt_say("%u more pairs of hosts cannot reach each other", n - NAMED_MAX);
}

static void refuse(struct dt_job *j)
{
    char *text = dt_xasprintf("the hosts cannot reach each other%s; --iface chooses between their "
                              "networks",
                              j->core.generation == 1 ? ", nothing was started" : "");

    dt_refusal_add(&j->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(&j->core, DT_EV_SPAWN_FAILED);
}

/* Goes on without the hosts that others do not reach, of which no rank runs yet in this generation.
 */
static void leave_out(struct dt_job *j)
{
    bool *out = dt_xcalloc(j->net.n, sizeof *out);

    dt_reach_leave_out(j->net.reach, j->net.n, out);
    memset(j->retried, 0, j->core.config->hosts->n * sizeof *j->retried); /* a new recovery */
    dt_history_last(&j->history)->generation = j->core.generation + 1;
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        size_t host = j->core.plan.nodes[i].host;

        if (!out[i])
            continue;
        j->retried[host] = true;
        dt_hostlink_close(j->core.links.v[host], "other hosts do not reach it");
    }
    free(out);
    dt_core_event(&j->core, DT_EV_CUT_OFF);
}

/* At the beginning the user is to decide what is meant; a job that has run goes on as it can. */
static void on_broken(struct dt_job *j, enum dt_reach_outcome outcome)
{
    say_broken(j, outcome);
    if (j->core.generation > 1 && j->core.config->on_host_loss == DT_HOST_LOSS_MOVE)
        leave_out(j);
    else
        refuse(j);
}

static void say_network(const struct dt_job *j)
{
    for (uint32_t i = 0; i < j->net.n; i++) {
        const struct dt_candidate *c = &j->net.reach[i].candidates.v[j->net.reach[i].chosen];

        dt_verbose("%s: other hosts reach it at %s%s%s", name_of(j, i), c->addr,
                   c->iface[0] ? ", interface " : "", c->iface);
    }
}

/* Returns whether it is known now which addresses ranks use. */
static bool decide(struct dt_job *j)
{
    enum dt_reach_outcome outcome = dt_reach_choose(j->net.reach, j->net.n);

    if (outcome == DT_REACH_DIVIDED && !j->probing_all) {
        probe(j, true);
    } else if (outcome != DT_REACH_CHOSEN) {
        on_broken(j, outcome);
    } else {
        say_network(j);
        j->network_is_known = true;
    }
    return j->network_is_known;
}

bool dt_job_on_reach(struct dt_job *j, struct dt_hostlink *h, struct dt_msg_reach *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&j->core.plan, h->host);

    if (m->generation != j->core.generation || j->core.state != DT_JOB_STARTING || !node ||
        (m->all != 0) != j->probing_all || !h->probing)
        return false;
    h->probing = false;
    dt_hostnet_reached(&j->net, (uint32_t)node->node_rank, &m->results);
    return --j->unanswered == 0 && decide(j);
}

const char *dt_job_address(const struct dt_job *j, uint32_t node)
{
    const struct dt_reach_node *net = &j->net.reach[node];

    if (is_alone(j))
        return "127.0.0.1";
    return net->candidates.v[net->chosen].addr;
}

const char *dt_job_interface(const struct dt_job *j, uint32_t node)
{
    const struct dt_reach_node *net = &j->net.reach[node];

    if (is_alone(j))
        return "";
    return net->candidates.v[net->chosen].iface;
}
