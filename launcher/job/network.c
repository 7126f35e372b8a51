#include "launcher/job/network.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"

enum { NAMED_MAX = 8 }; /* pairs of hosts that are named */

static struct dt_hostlink *link_of(const struct dt_network *w, uint32_t node)
{
    return w->core->links.v[w->core->plan.nodes[node].host];
}

static const char *name_of(const struct dt_network *w, uint32_t node)
{
    return dt_core_host_name(w->core, w->core->plan.nodes[node].host);
}

static void say_unusable(void *arg, uint32_t node, const char *why)
{
    dt_say("%s: %s", name_of(arg, node), why);
}

void dt_network_free(struct dt_network *w)
{
    dt_hostnet_free(&w->net);
    dt_strs_free(&w->told);
}

static struct dt_hostnet_node describe(const struct dt_network *w, const struct dt_hostlink *h)
{
    return (struct dt_hostnet_node){
        .name = dt_core_host_name(w->core, h->host),
        .given = w->core->config->hosts->v[h->host].addr,
        .addr = h->addr,
        .peer_addr = h->peer_addr,
        .netaddrs = &h->netaddrs,
        .port = h->probe_port,
    };
}

bool dt_network_list_addresses(struct dt_network *w)
{
    dt_hostnet_free(&w->net);
    dt_hostnet_init(&w->net, (uint32_t)w->core->plan.nnodes, w->core->config->iface);
    for (uint32_t i = 0; i < w->net.n; i++)
        w->net.nodes[i] = describe(w, link_of(w, i));
    return dt_hostnet_list_addresses(&w->net, say_unusable, w);
}

static void note_unusable(void *arg, uint32_t node, const char *why)
{
    bool *usable = arg;

    (void)why;
    *usable &= node != 0;
}

/* The first host of the job stands for those that are to reach it. */
bool dt_network_has_address(const struct dt_network *w, const struct dt_hostlink *h)
{
    struct dt_hostnet net;
    bool usable = true;

    dt_hostnet_init(&net, 2, w->core->config->iface);
    net.nodes[0] = describe(w, h);
    net.nodes[1] = describe(w, link_of(w, 0));
    dt_hostnet_list_addresses(&net, note_unusable, &usable);
    dt_hostnet_free(&net);
    return usable;
}

static void send_probe(struct dt_network *w, uint32_t node, bool all)
{
    struct dt_msg_target targets[DT_REACH_TARGETS];
    struct dt_msg_probe m = { .generation = w->core->generation,
                              .all = all,
                              .bytes = DT_REACH_BYTES };

    memcpy(m.secret, w->secret, sizeof m.secret);
    dt_hostnet_probe(&w->net, node, &m, targets);
    dt_hostlink_send(link_of(w, node), DT_MSG_PROBE, &m);
    link_of(w, node)->probing = true;
    dt_hostnet_free_targets(&m);
}

static void probe(struct dt_network *w, bool all)
{
    w->probing_all = all;
    w->unanswered = w->net.n;
    for (uint32_t i = 0; i < w->net.n; i++)
        send_probe(w, i, all);
}

void dt_network_probe(struct dt_network *w)
{
    w->is_known = w->net.n == 1;
    for (uint32_t i = 0; i < w->net.n; i++)
        link_of(w, i)->probing = false;
    if (!w->is_known)
        probe(w, false);
}

/* A job that waits for hosts finds the same at each try. */
static void say_once(struct dt_network *w, const char *line)
{
    bool told = dt_strs_has(&w->told, line, strlen(line));

    (told ? dt_verbose : dt_say)("%s", line);
    if (!told)
        dt_xstrs_add(&w->told, line);
}

static void say_divided(struct dt_network *w, uint32_t target)
{
    struct dt_strbuf b = { 0 };

    dt_strbuf_printf(&b, "%s ", name_of(w, target));
    dt_hostnet_describe_divided(&b, &w->net, target);
    say_once(w, b.data);
    dt_strbuf_free(&b);
}

static void say_cut(struct dt_network *w, uint32_t caller, uint32_t target)
{
    struct dt_strbuf b = { 0 };

    dt_strbuf_printf(&b, "%s ", name_of(w, caller));
    dt_hostnet_describe_unreachable(&b, &w->net, caller, target);
    say_once(w, b.data);
    dt_strbuf_free(&b);
}

static uint32_t say_all_cut(struct dt_network *w)
{
    uint32_t targets[DT_REACH_TARGETS], n = 0;

    for (uint32_t i = 0; i < w->net.n; i++) {
        for (uint32_t k = dt_reach_targets(i, w->net.n, targets); k-- > 0;) {
            if (dt_reach_mask(w->net.reach, i, targets[k]))
                continue;
            if (n++ < NAMED_MAX)
                say_cut(w, i, targets[k]);
        }
    }
    return n;
}

static void say_rest(struct dt_network *w, uint32_t pairs)
{
    char *line = dt_xasprintf("%u more pairs of hosts cannot reach each other", pairs);

    say_once(w, line);
    free(line);
}

static void say_broken(struct dt_network *w, enum dt_reach_outcome outcome)
{
    uint32_t n = outcome == DT_REACH_CUT ? say_all_cut(w) : 0;

    for (uint32_t i = 0; i < w->net.n && outcome == DT_REACH_DIVIDED; i++) {
        if (w->net.reach[i].chosen == DT_REACH_NOWHERE)
            say_divided(w, i);
    }
    if (n > NAMED_MAX)
        say_rest(w, n - NAMED_MAX);
}

static void say_network(const struct dt_network *w)
{
    for (uint32_t i = 0; i < w->net.n; i++) {
        const struct dt_candidate *c = &w->net.reach[i].candidates.v[w->net.reach[i].chosen];

        dt_verbose("%s: other hosts reach it at %s%s%s", name_of(w, i), c->addr,
                   c->iface[0] ? ", interface " : "", c->iface);
    }
}

static enum dt_network_news decide(struct dt_network *w)
{
    enum dt_reach_outcome outcome = dt_reach_choose(w->net.reach, w->net.n);

    if (outcome == DT_REACH_DIVIDED && !w->probing_all) {
        probe(w, true);
        return DT_NETWORK_NO_NEWS;
    }
    if (outcome != DT_REACH_CHOSEN) {
        say_broken(w, outcome);
        return DT_NETWORK_BROKEN;
    }
    say_network(w);
    dt_strs_free(&w->told);
    w->is_known = true;
    return DT_NETWORK_KNOWN;
}

enum dt_network_news dt_network_on_reach(struct dt_network *w, struct dt_hostlink *h,
                                         struct dt_msg_reach *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&w->core->plan, h->host);

    if (m->generation != w->core->generation || w->core->state != DT_JOB_STARTING || !node ||
        (m->all != 0) != w->probing_all || !h->probing)
        return DT_NETWORK_NO_NEWS;
    h->probing = false;
    dt_hostnet_reached(&w->net, (uint32_t)node->node_rank, &m->results);
    return --w->unanswered == 0 ? decide(w) : DT_NETWORK_NO_NEWS;
}

void dt_network_leave_out(const struct dt_network *w, bool *out)
{
    dt_reach_leave_out(w->net.reach, w->net.n, out);
}

const char *dt_network_address(const struct dt_network *w, uint32_t node)
{
    const struct dt_reach_node *net = &w->net.reach[node];

    if (dt_hostnet_is_alone(&w->net))
        return "127.0.0.1";
    return net->candidates.v[net->chosen].addr;
}

const char *dt_network_interface(const struct dt_network *w, uint32_t node)
{
    const struct dt_reach_node *net = &w->net.reach[node];

    if (dt_hostnet_is_alone(&w->net))
        return "";
    return net->candidates.v[net->chosen].iface;
}
