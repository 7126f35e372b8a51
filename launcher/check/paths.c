#include "launcher/check/paths.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/random.h"

enum {
    BYTES_FIRST = 64 * 1024,
    BYTES_FACTOR = 8,
    BYTES_LAST = 32 * 1024 * 1024,
    LONG_ENOUGH_NS = 20 * 1000 * 1000,
    TOO_LONG_NS = 80 * 1000 * 1000,
    TIMES = 3, /* measurements of each path: other work on the hosts only makes a result worse */
};

static uint32_t next_of(const struct dt_check_paths *p, uint32_t node)
{
    return (node + 1) % p->net.n;
}

static void send_probe(struct dt_check_paths *p, uint32_t node, struct dt_msg_probe *m)
{
    m->node = node;
    memcpy(m->secret, p->secret, sizeof m->secret);
    dt_session_send(p->peers[node]->session, DT_MSG_PROBE, m);
}

/* ---- which hosts reach which ---- */

static void probe(struct dt_check_paths *p, bool all)
{
    p->all = all;
    p->generation++;
    p->waiting = p->net.n;
    for (uint32_t i = 0; i < p->net.n; i++) {
        struct dt_msg_target targets[DT_REACH_TARGETS];
        struct dt_msg_probe m = { .generation = p->generation,
                                  .all = all,
                                  .bytes = DT_REACH_BYTES };

        dt_hostnet_probe(&p->net, i, &m, targets);
        p->paths[i].generation = p->generation;
        send_probe(p, i, &m);
        dt_hostnet_free_targets(&m);
    }
}

static void set_problem(struct dt_check_paths *p, uint32_t node, struct dt_strbuf *text)
{
    dt_check_set_problem(p->peers[node]->host, dt_strbuf_text(text));
    dt_strbuf_free(text);
}

static void find_cuts(struct dt_check_paths *p)
{
    uint32_t targets[DT_REACH_TARGETS];

    for (uint32_t i = 0; i < p->net.n; i++) {
        struct dt_strbuf b = { 0 };

        for (uint32_t k = dt_reach_targets(i, p->net.n, targets); k-- > 0;) {
            if (dt_reach_mask(p->net.reach, i, targets[k]))
                continue;
            dt_strbuf_puts(&b, b.len ? "; " : "");
            dt_hostnet_describe_unreachable(&b, &p->net, i, targets[k]);
        }
        if (b.len)
            set_problem(p, i, &b);
    }
}

static void find_divided(struct dt_check_paths *p)
{
    for (uint32_t i = 0; i < p->net.n; i++) {
        struct dt_strbuf b = { 0 };

        if (p->net.reach[i].chosen != DT_REACH_NOWHERE)
            continue;
        dt_hostnet_describe_divided(&b, &p->net, i);
        set_problem(p, i, &b);
    }
}

/* ---- round trip and bandwidth to the next host ---- */

/* The next host is told as well, because it accepts only callers of a known PROBE. */
static void measure(struct dt_check_paths *p, uint32_t node)
{
    struct dt_check_path *path = &p->paths[node];
    uint32_t next = next_of(p, node);
    struct dt_msg_target target;
    struct dt_msg_probe m = { .generation = ++p->generation, .bytes = path->bytes };

    path->generation = m.generation;
    send_probe(p, next, &m);
    dt_hostnet_target(&p->net, next,
                      (uint32_t)__builtin_ctz(dt_reach_mask(p->net.reach, node, next)), 1, &target);
    m.targets = (struct dt_msg_list){ &target, 1 };
    send_probe(p, node, &m);
    dt_hostnet_free_targets(&m);
}

/* Begins the next round in which anything can be measured. */
static void next_round(struct dt_check_paths *p)
{
    size_t rounds = dt_reach_rounds(p->net.n);

    p->waiting = 0;
    for (; p->waiting == 0 && p->round < TIMES * rounds; p->round++) {
        for (uint32_t i = 0; i < p->net.n; i++) {
            if (dt_reach_round_of(i, p->net.n) != p->round % rounds ||
                !dt_reach_mask(p->net.reach, i, next_of(p, i)))
                continue;
            p->waiting++;
            if (p->paths[i].bytes == 0)
                p->paths[i].bytes = BYTES_FIRST;
            measure(p, i);
        }
    }
    p->over = p->waiting == 0;
}

static void take_figures(struct dt_check_paths *p, uint32_t node, const struct dt_msg_reached *r)
{
    struct dt_check_host *h = p->peers[node]->host;
    double bandwidth = 8e9 * p->paths[node].bytes / (double)(r->bulk_ns ? r->bulk_ns : 1);

    if (!h->next || r->rtt_us < h->rtt_us)
        h->rtt_us = r->rtt_us;
    h->next = p->net.nodes[next_of(p, node)].name;
    if (!p->paths[node].measured || bandwidth > h->bandwidth)
        h->bandwidth = bandwidth;
}

/* The bytes also come back, on a path that may be slower and is not measured. TOO_LONG_NS limits
 * the time for both ways. Only the agent's clock counts: dtrun itself may be late. */
static bool is_long_enough(const struct dt_msg_reached *r)
{
    return r->bulk_ns >= LONG_ENOUGH_NS || r->both_ns >= TOO_LONG_NS;
}

static void on_measured(struct dt_check_paths *p, uint32_t node, const struct dt_msg_reach *m)
{
    const struct dt_msg_reached *r = m->results.v;
    struct dt_check_path *path = &p->paths[node];

    if (m->results.n == 1 && r->state == DT_REACH_OK) {
        take_figures(p, node, r);
        if (!is_long_enough(r) && path->bytes < BYTES_LAST) {
            path->bytes *= BYTES_FACTOR;
            measure(p, node);
            return;
        }
        path->measured = true;
    }
    if (--p->waiting == 0)
        next_round(p);
}

static void on_reached(struct dt_check_paths *p, uint32_t node, struct dt_msg_reach *m)
{
    enum dt_reach_outcome outcome;

    dt_hostnet_reached(&p->net, node, &m->results);
    if (--p->waiting > 0)
        return;
    outcome = dt_reach_choose(p->net.reach, p->net.n);
    if (outcome == DT_REACH_DIVIDED && !p->all) {
        probe(p, true);
        return;
    }
    if (outcome == DT_REACH_CUT)
        find_cuts(p);
    else if (outcome == DT_REACH_DIVIDED)
        find_divided(p);
    p->measuring = true;
    next_round(p);
}

void dt_check_paths_answer(struct dt_check_paths *p, const struct dt_check_peer *from,
                           struct dt_msg_reach *m)
{
    uint32_t node = 0;

    while (node < p->net.n && p->peers[node] != from)
        node++;
    /* A host that is only a target answers as well, but nothing waits for that. */
    if (node == p->net.n || p->over || m->generation == 0 ||
        m->generation != p->paths[node].generation)
        return;
    p->paths[node].generation = 0;
    if (p->measuring)
        on_measured(p, node, m);
    else
        on_reached(p, node, m);
}

static void set_unusable(void *arg, uint32_t node, const char *why)
{
    struct dt_check_paths *p = arg;

    dt_check_set_problem(p->peers[node]->host, why);
}

static bool list_addresses(struct dt_check_paths *p, const struct dt_job_config *job)
{
    for (uint32_t i = 0; i < p->net.n; i++) {
        const struct dt_check_peer *peer = p->peers[i];

        p->net.nodes[i] = (struct dt_hostnet_node){
            .name = peer->host->name,
            .given = job->hosts->v[peer->index].addr,
            .addr = peer->addr,
            .peer_addr = peer->peer_addr,
            .netaddrs = &peer->netaddrs,
            .port = peer->probe_port,
        };
    }
    return dt_hostnet_list_addresses(&p->net, set_unusable, p);
}

void dt_check_paths_begin(struct dt_check_paths *p, const struct dt_job_config *job,
                          struct dt_check_peer *const *peers, uint32_t n)
{
    p->begun = true;
    p->peers = dt_xcalloc(n, sizeof *p->peers);
    p->paths = dt_xcalloc(n, sizeof *p->paths);
    memcpy(p->peers, peers, n * sizeof *p->peers);
    dt_hostnet_init(&p->net, n, job->iface);
    dt_random_fill(p->secret, sizeof p->secret);
    p->over = !list_addresses(p, job) || n < 2;
    if (p->over)
        return;
    dt_verbose("trying the connections between %u hosts", n);
    probe(p, false);
}

void dt_check_paths_free(struct dt_check_paths *p)
{
    dt_hostnet_free(&p->net);
    free(p->peers);
    free(p->paths);
}
