/* The network between the hosts of a generation: which addresses to try, what the agents find, and
 * what ranks are told. */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/job/words.h"

enum { NAMED_MAX = 8 }; /* pairs of hosts that are named */

static struct dt_hostlink *link_of(const struct dt_job *j, uint32_t node)
{
    return j->links[j->plan.nodes[node].host];
}

static const char *name_of(const struct dt_job *j, uint32_t node)
{
    return dt_job_host_name(j, j->plan.nodes[node].host);
}

/* An address that has worked already: for a remote host that at which its sshd was reached, for
 * this machine that which a remote host saw. */
static const char *preferred(const struct dt_job *j, const struct dt_hostlink *h)
{
    if (h->addr[0])
        return h->addr;
    for (size_t i = 0; i < j->plan.nnodes; i++) {
        const struct dt_hostlink *other = link_of(j, (uint32_t)i);

        if (other->peer_addr[0])
            return other->peer_addr;
    }
    return NULL;
}

static void say_unusable(const struct dt_job *j, uint32_t node)
{
    struct dt_strbuf b = { 0 };

    dt_iface_describe(&b, &link_of(j, node)->netaddrs);
    if (j->config->iface)
        dt_say("%s: --iface %s: no interface of this host fits; those that are up: %s",
               name_of(j, node), j->config->iface, dt_strbuf_text(&b));
    else
        dt_say("%s: it has no network interface that is up", name_of(j, node));
    dt_strbuf_free(&b);
}

void dt_job_free_network(struct dt_job *j)
{
    for (uint32_t i = 0; i < j->nnet; i++)
        free(j->net[i].results.v);
    free(j->net);
    j->net = NULL;
    j->nnet = 0;
}

bool dt_job_list_addresses(struct dt_job *j)
{
    bool usable = true;

    dt_job_free_network(j);
    j->nnet = (uint32_t)j->plan.nnodes;
    j->net = dt_xcalloc(j->nnet, sizeof *j->net);
    for (uint32_t i = 0; i < j->nnet; i++) {
        const struct dt_hostlink *h = link_of(j, i);
        const struct dt_iface_want want = {
            .list = j->config->iface,
            .addr = j->config->hosts->v[h->host].addr,
            .preferred = preferred(j, h),
        };

        dt_iface_choose(&j->net[i].candidates, &h->netaddrs, &want);
        if (j->net[i].candidates.n > 0 || (j->nnet == 1 && !j->config->iface))
            continue;
        say_unusable(j, i);
        usable = false;
    }
    return usable;
}

static void fill_target(const struct dt_job *j, struct dt_msg_target *t, uint32_t node)
{
    const struct dt_candidates *c = &j->net[node].candidates;

    *t = (struct dt_msg_target){ .node = node, .port = link_of(j, node)->probe_port };
    for (uint32_t i = 0; i < c->n; i++)
        dt_xstrs_add(&t->addrs, c->v[i].addr);
}

static void send_probe(struct dt_job *j, uint32_t node, bool all)
{
    uint32_t numbers[DT_REACH_TARGETS];
    struct dt_msg_target targets[DT_REACH_TARGETS];
    struct dt_msg_probe m = {
        .generation = j->generation,
        .node = node,
        .all = all,
        .bytes = DT_REACH_BYTES,
        .targets = { targets, dt_reach_targets(node, j->nnet, numbers) },
    };

    memcpy(m.secret, j->secret, sizeof m.secret);
    for (uint32_t i = 0; i < m.targets.n; i++)
        fill_target(j, &targets[i], numbers[i]);
    dt_hostlink_send(link_of(j, node), DT_MSG_PROBE, &m);
    link_of(j, node)->probing = true;
    for (uint32_t i = 0; i < m.targets.n; i++)
        dt_strs_free(&targets[i].addrs);
}

static void probe(struct dt_job *j, bool all)
{
    j->probing_all = all;
    j->unanswered = j->nnet;
    for (uint32_t i = 0; i < j->nnet; i++)
        send_probe(j, i, all);
}

void dt_job_probe(struct dt_job *j)
{
    j->network_is_known = j->nnet == 1;
    for (uint32_t i = 0; i < j->nnet; i++)
        link_of(j, i)->probing = false;
    if (!j->network_is_known)
        probe(j, false);
}

static void say_divided(const struct dt_job *j, uint32_t target)
{
    struct dt_strbuf b = { 0 };
    uint32_t targets[DT_REACH_TARGETS], n = 0;

    for (uint32_t i = 0; i < j->nnet; i++) {
        uint32_t mask = 0;

        for (uint32_t k = dt_reach_targets(i, j->nnet, targets); k-- > 0;)
            mask |= targets[k] == target ? dt_reach_mask(j->net, i, target) : 0;
        if (mask && n++ < NAMED_MAX)
            dt_strbuf_printf(&b, "%s%s at %s", b.len ? ", " : "", name_of(j, i),
                             j->net[target].candidates.v[__builtin_ctz(mask)].addr);
    }
    dt_say("%s has no address at which all hosts reach it: %s", name_of(j, target),
           dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* What caller found at the addresses of target, none of which will do. */
static void say_cut(const struct dt_job *j, uint32_t caller, uint32_t target)
{
    const struct dt_reach_node *from = &j->net[caller];
    const struct dt_msg_reached *v = from->results.v;
    struct dt_strbuf b = { 0 };

    for (uint32_t i = 0; i < from->results.n; i++) {
        const struct dt_candidates *c = &j->net[target].candidates;

        if (v[i].node != target || v[i].addr >= c->n)
            continue;
        dt_strbuf_puts(&b, b.len ? "; nor " : "");
        dt_words_reached(&b, &v[i], &c->v[v[i].addr], link_of(j, target)->probe_port);
    }
    dt_say("%s cannot reach %s %s", name_of(j, caller), name_of(j, target), dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static uint32_t say_all_cut(const struct dt_job *j)
{
    uint32_t targets[DT_REACH_TARGETS], n = 0;

    for (uint32_t i = 0; i < j->nnet; i++) {
        for (uint32_t k = dt_reach_targets(i, j->nnet, targets); k-- > 0;) {
            if (dt_reach_mask(j->net, i, targets[k]))
                continue;
            if (n++ < NAMED_MAX)
                say_cut(j, i, targets[k]);
        }
    }
    return n;
}

static void refuse(struct dt_job *j, enum dt_reach_outcome outcome)
{
    uint32_t n = outcome == DT_REACH_CUT ? say_all_cut(j) : 0;

    for (uint32_t i = 0; i < j->nnet && outcome == DT_REACH_DIVIDED; i++) {
        if (j->net[i].chosen == DT_REACH_NOWHERE)
            say_divided(j, i);
    }
    if (n > NAMED_MAX)
        dt_say("%u more pairs of hosts cannot reach each other", n - NAMED_MAX);
    j->refusal.text = dt_xasprintf("the hosts cannot reach each other%s; --iface chooses between "
                                   "their networks",
                                   j->generation == 1 ? ", nothing was started" : "");
    j->refusal.exit_code = DT_EXIT_LAUNCH;
    dt_job_event(j, DT_EV_SPAWN_FAILED);
}

static void say_network(const struct dt_job *j)
{
    for (uint32_t i = 0; i < j->nnet; i++) {
        const struct dt_candidate *c = &j->net[i].candidates.v[j->net[i].chosen];

        dt_verbose("%s: other hosts reach it at %s%s%s", name_of(j, i), c->addr,
                   c->iface[0] ? ", interface " : "", c->iface);
    }
}

static void decide(struct dt_job *j)
{
    enum dt_reach_outcome outcome = dt_reach_choose(j->net, j->nnet);

    if (outcome == DT_REACH_DIVIDED && !j->probing_all) {
        probe(j, true);
    } else if (outcome != DT_REACH_CHOSEN) {
        refuse(j, outcome);
    } else {
        say_network(j);
        j->network_is_known = true;
        dt_job_maybe_go(j);
    }
}

void dt_job_on_reach(struct dt_job *j, struct dt_hostlink *h, struct dt_msg_reach *m)
{
    const struct dt_plan_node *node = dt_job_node_of_host(j, h->host);
    struct dt_reach_node *net;

    if (m->generation != j->generation || j->state != DT_JOB_STARTING || !node ||
        (m->all != 0) != j->probing_all || !h->probing)
        return;
    h->probing = false;
    net = &j->net[node->node_rank];
    free(net->results.v);
    net->results = m->results;
    m->results = (struct dt_msg_list){ 0 };
    if (--j->unanswered == 0)
        decide(j);
}

const char *dt_job_address(const struct dt_job *j, uint32_t node)
{
    const struct dt_reach_node *net = &j->net[node];

    /* One host alone is independent of its network, unless told otherwise. */
    if (j->nnet == 1 && !j->config->iface)
        return "127.0.0.1";
    return net->candidates.v[net->chosen].addr;
}

const char *dt_job_interface(const struct dt_job *j, uint32_t node)
{
    const struct dt_reach_node *net = &j->net[node];

    if (j->nnet == 1 && !j->config->iface)
        return "";
    return net->candidates.v[net->chosen].iface;
}
