#include "launcher/session/hostnet.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/watch/words.h"

enum { NAMED_MAX = 8 }; /* maximum number of callers in a message */

void dt_hostnet_init(struct dt_hostnet *net, uint32_t n, const char *iface)
{
    *net = (struct dt_hostnet){ .iface = iface, .n = n };
    net->nodes = dt_xcalloc(n, sizeof *net->nodes);
    net->reach = dt_xcalloc(n, sizeof *net->reach);
}

void dt_hostnet_free(struct dt_hostnet *net)
{
    for (uint32_t i = 0; i < net->n; i++)
        free(net->reach[i].results.v);
    free(net->nodes);
    free(net->reach);
    *net = (struct dt_hostnet){ 0 };
}

/* Returns an address that has already worked: for a remote host the one at which its sshd was
 * reached, for this machine the one that a remote host saw. */
static const char *preferred(const struct dt_hostnet *net, uint32_t node)
{
    if (net->nodes[node].addr[0])
        return net->nodes[node].addr;
    for (uint32_t i = 0; i < net->n; i++) {
        if (net->nodes[i].peer_addr[0])
            return net->nodes[i].peer_addr;
    }
    return NULL;
}

static bool list_candidates(struct dt_hostnet *net, uint32_t node)
{
    const struct dt_hostnet_node *h = &net->nodes[node];
    const struct dt_iface_want want = {
        .list = net->iface,
        .addr = h->given,
        .preferred = preferred(net, node),
    };

    dt_iface_choose(&net->reach[node].candidates, h->netaddrs, &want);
    return net->reach[node].candidates.n > 0;
}

static void say_none(struct dt_strbuf *out, const struct dt_hostnet *net, uint32_t node)
{
    if (!net->iface) {
        dt_strbuf_puts(
            out, "no network interface is up there, or its agent may not list them (see ip addr)");
        return;
    }
    dt_strbuf_printf(out,
                     "--iface %s: no interface of this host fits; those that are up: ", net->iface);
    dt_iface_describe(out, net->nodes[node].netaddrs);
}

bool dt_hostnet_is_alone(const struct dt_hostnet *net)
{
    return net->n == 1 && !net->iface;
}

bool dt_hostnet_list_addresses(struct dt_hostnet *net,
                               void (*unusable)(void *arg, uint32_t node, const char *why),
                               void *arg)
{
    bool usable = true;

    for (uint32_t i = 0; i < net->n; i++) {
        struct dt_strbuf why = { 0 };

        if (list_candidates(net, i) || dt_hostnet_is_alone(net))
            continue;
        say_none(&why, net, i);
        unusable(arg, i, dt_strbuf_text(&why));
        dt_strbuf_free(&why);
        usable = false;
    }
    return usable;
}

void dt_hostnet_target(const struct dt_hostnet *net, uint32_t to, uint32_t from_addr, uint32_t n,
                       struct dt_msg_target *target)
{
    const struct dt_candidates *c = &net->reach[to].candidates;

    *target = (struct dt_msg_target){ .node = to, .port = net->nodes[to].port };
    for (uint32_t i = from_addr; i < c->n && i - from_addr < n; i++)
        dt_xstrs_add(&target->addrs, c->v[i].addr);
}

void dt_hostnet_probe(const struct dt_hostnet *net, uint32_t node, struct dt_msg_probe *m,
                      struct dt_msg_target targets[DT_REACH_TARGETS])
{
    uint32_t numbers[DT_REACH_TARGETS];

    m->node = node;
    m->targets = (struct dt_msg_list){ targets, dt_reach_targets(node, net->n, numbers) };
    for (uint32_t i = 0; i < m->targets.n; i++)
        dt_hostnet_target(net, numbers[i], 0, DT_CANDIDATES_MAX, &targets[i]);
}

void dt_hostnet_free_targets(struct dt_msg_probe *m)
{
    struct dt_msg_target *targets = m->targets.v;

    for (uint32_t i = 0; i < m->targets.n; i++)
        dt_strs_free(&targets[i].addrs);
}

void dt_hostnet_reached(struct dt_hostnet *net, uint32_t node, struct dt_msg_list *results)
{
    free(net->reach[node].results.v);
    net->reach[node].results = *results;
    *results = (struct dt_msg_list){ 0 };
}

void dt_hostnet_describe_unreachable(struct dt_strbuf *out, const struct dt_hostnet *net,
                                     uint32_t caller, uint32_t target)
{
    const struct dt_reach_node *from = &net->reach[caller];
    const struct dt_candidates *c = &net->reach[target].candidates;
    const struct dt_msg_reached *v = from->results.v;
    const char *nor = "";

    dt_strbuf_printf(out, "cannot reach %s ", net->nodes[target].name);
    for (uint32_t i = 0; i < from->results.n; i++) {
        if (v[i].node != target || v[i].addr >= c->n)
            continue;
        dt_strbuf_puts(out, nor);
        dt_words_reached(out, &v[i], &c->v[v[i].addr], net->nodes[target].port);
        nor = "; nor ";
    }
}

void dt_hostnet_describe_divided(struct dt_strbuf *out, const struct dt_hostnet *net,
                                 uint32_t target)
{
    uint32_t targets[DT_REACH_TARGETS], n = 0;

    dt_strbuf_puts(out, "has no address at which all hosts reach it: ");
    for (uint32_t i = 0; i < net->n; i++) {
        uint32_t mask = 0;

        for (uint32_t k = dt_reach_targets(i, net->n, targets); k-- > 0;)
            mask |= targets[k] == target ? dt_reach_mask(net->reach, i, target) : 0;
        if (mask && n++ < NAMED_MAX)
            dt_strbuf_printf(out, "%s%s at %s", n > 1 ? ", " : "", net->nodes[i].name,
                             net->reach[target].candidates.v[__builtin_ctz(mask)].addr);
    }
}

struct dt_msg_list dt_netaddrs_copy(const struct dt_msg_list *addrs)
{
    const struct dt_msg_netaddr *v = addrs->v;
    struct dt_msg_netaddr *copy = dt_xcalloc(addrs->n, sizeof *copy);

    for (uint32_t i = 0; i < addrs->n; i++)
        copy[i] =
            (struct dt_msg_netaddr){ dt_xstrdup(v[i].iface), dt_xstrdup(v[i].addr), v[i].mtu };
    return (struct dt_msg_list){ copy, addrs->n };
}

void dt_netaddrs_free(struct dt_msg_list *addrs)
{
    struct dt_msg_netaddr *v = addrs->v;

    for (uint32_t i = 0; i < addrs->n; i++) {
        free(v[i].iface);
        free(v[i].addr);
    }
    free(v);
    *addrs = (struct dt_msg_list){ 0 };
}
