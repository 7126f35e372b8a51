#include "launcher/check/ways.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/clock.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/base/random.h"
#include "launcher/check/rounds.h"

enum {
    BYTES_FIRST = 64 * 1024,
    BYTES_FACTOR = 8,
    BYTES_LAST = 32 * 1024 * 1024,
    LONG_ENOUGH_NS = 20 * 1000 * 1000,
    TOO_LONG_NS = 80 * 1000 * 1000,
    HANDSHAKE_TRIPS = 5,
    TIMES = 3, /* each way is measured: other work on the hosts only makes a result worse */
};

static uint32_t next_of(const struct dt_check_ways *w, uint32_t node)
{
    return (node + 1) % w->net.n;
}

static void send_probe(struct dt_check_ways *w, uint32_t node, struct dt_msg_probe *m)
{
    m->node = node;
    memcpy(m->secret, w->secret, sizeof m->secret);
    dt_session_send(w->peers[node]->session, DT_MSG_PROBE, m);
}

/* --- who reaches whom --- */

static void probe(struct dt_check_ways *w, bool all)
{
    w->all = all;
    w->generation++;
    w->waiting = w->net.n;
    for (uint32_t i = 0; i < w->net.n; i++) {
        struct dt_msg_target targets[DT_REACH_TARGETS];
        struct dt_msg_probe m = { .generation = w->generation,
                                  .all = all,
                                  .bytes = DT_REACH_BYTES };

        dt_hostnet_probe(&w->net, i, &m, targets);
        w->ways[i].generation = w->generation;
        send_probe(w, i, &m);
        dt_hostnet_free_targets(&m);
    }
}

static void set_problem(struct dt_check_ways *w, uint32_t node, struct dt_strbuf *text)
{
    dt_check_set_problem(w->peers[node]->host, dt_strbuf_text(text));
    dt_strbuf_free(text);
}

static void find_cuts(struct dt_check_ways *w)
{
    uint32_t targets[DT_REACH_TARGETS];

    for (uint32_t i = 0; i < w->net.n; i++) {
        struct dt_strbuf b = { 0 };

        for (uint32_t k = dt_reach_targets(i, w->net.n, targets); k-- > 0;) {
            if (dt_reach_mask(w->net.reach, i, targets[k]))
                continue;
            dt_strbuf_puts(&b, b.len ? "; " : "");
            dt_hostnet_say_cut(&b, &w->net, i, targets[k]);
        }
        if (b.len)
            set_problem(w, i, &b);
    }
}

static void find_divided(struct dt_check_ways *w)
{
    for (uint32_t i = 0; i < w->net.n; i++) {
        struct dt_strbuf b = { 0 };

        if (w->net.reach[i].chosen != DT_REACH_NOWHERE)
            continue;
        dt_hostnet_say_divided(&b, &w->net, i);
        set_problem(w, i, &b);
    }
}

/* --- how good the way to the next host is --- */

/* The next host must know of it, too, to accept the caller. */
static void measure(struct dt_check_ways *w, uint32_t node)
{
    struct dt_check_way *way = &w->ways[node];
    uint32_t next = next_of(w, node);
    struct dt_msg_target target;
    struct dt_msg_probe m = { .generation = ++w->generation, .bytes = way->bytes };

    way->generation = m.generation;
    way->asked_ns = dt_now_ns();
    send_probe(w, next, &m);
    dt_hostnet_target(&w->net, next,
                      (uint32_t)__builtin_ctz(dt_reach_mask(w->net.reach, node, next)), 1, &target);
    m.targets = (struct dt_msg_list){ &target, 1 };
    send_probe(w, node, &m);
    dt_hostnet_free_targets(&m);
}

/* Begins the next round in which anything can be measured. */
static void next_round(struct dt_check_ways *w)
{
    size_t rounds = dt_rounds_count(w->net.n);

    w->waiting = 0;
    for (; w->waiting == 0 && w->round < TIMES * rounds; w->round++) {
        for (uint32_t i = 0; i < w->net.n; i++) {
            if (dt_rounds_of(i, w->net.n) != w->round % rounds ||
                !dt_reach_mask(w->net.reach, i, next_of(w, i)))
                continue;
            w->waiting++;
            if (w->ways[i].bytes == 0)
                w->ways[i].bytes = BYTES_FIRST;
            measure(w, i);
        }
    }
    w->over = w->waiting == 0;
}

static void take_figures(struct dt_check_ways *w, uint32_t node, const struct dt_msg_reached *r)
{
    struct dt_check_host *h = w->peers[node]->host;
    double bandwidth = 8e9 * w->ways[node].bytes / (double)(r->bulk_ns ? r->bulk_ns : 1);

    if (!h->next || r->rtt_us < h->rtt_us)
        h->rtt_us = r->rtt_us;
    h->next = w->net.nodes[next_of(w, node)].name;
    if (!w->ways[node].measured || bandwidth > h->bandwidth)
        h->bandwidth = bandwidth;
}

/* The bytes also go back, which may be slower and is not measured. The bandwidth follows from the
 * time that remains without the round trips (question and answer; connection and handshake). */
static bool is_long_enough(const struct dt_check_ways *w, uint32_t node,
                           const struct dt_msg_reached *r)
{
    uint64_t took = dt_now_ns() - w->ways[node].asked_ns;
    uint64_t trips = w->peers[node]->heartbeat.best_rtt_ns + HANDSHAKE_TRIPS * 1000ull * r->rtt_us;

    return r->bulk_ns >= LONG_ENOUGH_NS || took >= trips + TOO_LONG_NS;
}

static void on_measured(struct dt_check_ways *w, uint32_t node, const struct dt_msg_reach *m)
{
    const struct dt_msg_reached *r = m->results.v;
    struct dt_check_way *way = &w->ways[node];

    if (m->results.n == 1 && r->state == DT_REACH_OK) {
        take_figures(w, node, r);
        if (!is_long_enough(w, node, r) && way->bytes < BYTES_LAST) {
            way->bytes *= BYTES_FACTOR;
            measure(w, node);
            return;
        }
        way->measured = true;
    }
    if (--w->waiting == 0)
        next_round(w);
}

static void on_reached(struct dt_check_ways *w, uint32_t node, struct dt_msg_reach *m)
{
    enum dt_reach_outcome outcome;

    dt_hostnet_reached(&w->net, node, &m->results);
    if (--w->waiting > 0)
        return;
    outcome = dt_reach_choose(w->net.reach, w->net.n);
    if (outcome == DT_REACH_DIVIDED && !w->all) {
        probe(w, true);
        return;
    }
    if (outcome == DT_REACH_CUT)
        find_cuts(w);
    else if (outcome == DT_REACH_DIVIDED)
        find_divided(w);
    w->measuring = true;
    next_round(w);
}

void dt_check_ways_reach(struct dt_check_ways *w, const struct dt_check_peer *from,
                         struct dt_msg_reach *m)
{
    uint32_t node = 0;

    while (node < w->net.n && w->peers[node] != from)
        node++;
    /* A host that was only called answers, too, but nothing waits for that. */
    if (node == w->net.n || w->over || m->generation == 0 ||
        m->generation != w->ways[node].generation)
        return;
    w->ways[node].generation = 0;
    if (w->measuring)
        on_measured(w, node, m);
    else
        on_reached(w, node, m);
}

static void set_unusable(void *arg, uint32_t node, const char *why)
{
    struct dt_check_ways *w = arg;

    dt_check_set_problem(w->peers[node]->host, why);
}

static bool list_addresses(struct dt_check_ways *w, const struct dt_job_config *job)
{
    for (uint32_t i = 0; i < w->net.n; i++) {
        const struct dt_check_peer *p = w->peers[i];

        w->net.nodes[i] = (struct dt_hostnet_node){
            .name = p->host->name,
            .given = job->hosts->v[p->index].addr,
            .addr = p->addr,
            .peer_addr = p->peer_addr,
            .netaddrs = &p->netaddrs,
            .port = p->probe_port,
        };
    }
    return dt_hostnet_list_addresses(&w->net, set_unusable, w);
}

void dt_check_ways_begin(struct dt_check_ways *w, const struct dt_job_config *job,
                         struct dt_check_peer *const *peers, uint32_t n)
{
    w->begun = true;
    w->peers = dt_xcalloc(n, sizeof *w->peers);
    w->ways = dt_xcalloc(n, sizeof *w->ways);
    memcpy(w->peers, peers, n * sizeof *w->peers);
    dt_hostnet_init(&w->net, n, job->iface);
    dt_random_fill(w->secret, sizeof w->secret);
    w->over = !list_addresses(w, job) || n < 2;
    if (w->over)
        return;
    dt_verbose("trying the connections between %u hosts", n);
    probe(w, false);
}

void dt_check_ways_free(struct dt_check_ways *w)
{
    dt_hostnet_free(&w->net);
    free(w->peers);
    free(w->ways);
}
