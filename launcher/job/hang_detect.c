#include "launcher/job/hang_detect.h"

#include <inttypes.h>
#include <stdlib.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/watch/words.h"
#include "runtime/wire/hostshm.h"

enum {
    WARN_MS = 60 * 1000,
    AWAITED_MAX = 4, /* the most ranks that are described one by one */
    /* checks per limit: a wait ends at most a twentieth of its limit too late */
    TICKS_A_LIMIT = 20,
    ASKED_MAX = 10000, /* communicators in a PING, so that the answers fit */
};

struct blame {
    struct dt_u32s awaited;
    struct dt_u32s chain_ends;
    bool deadlock;
};

/* ---- texts for the user ---- */

static uint32_t limit_ms(const struct dt_hang_detect *d)
{
    return (uint32_t)d->core->config->collective_timeout_s * 1000;
}

/* Writes "barrier (call 7)". */
static void add_collective(struct dt_strbuf *out, uint64_t call)
{
    dt_strbuf_printf(out, "%s (call %" PRIu64 ")", dt_hostshm_call_name(call),
                     dt_hostshm_call_number(call));
}

/* Writes "send to rank 3 (call 7)". */
static void add_pair(struct dt_strbuf *out, const struct dt_waitgroup *g, uint64_t pair)
{
    uint32_t peer = dt_hostshm_pair_peer(pair);

    dt_strbuf_printf(out, "%s %s rank %u", dt_hostshm_call_name(pair),
                     (pair & (DT_HOSTSHM_INSIDE - 1)) == DT_CALL_SEND ? "to" : "from",
                     peer < g->n ? dt_waitgroup_rank(g, peer) : peer);
    if (dt_hostshm_pair_number(pair))
        dt_strbuf_printf(out, " (call %u)", dt_hostshm_pair_number(pair));
}

static void add_call(struct dt_strbuf *out, const struct dt_waitgroup *g, const struct dt_wait *w)
{
    if ((w->pair & DT_HOSTSHM_INSIDE) || w->call == 0)
        add_pair(out, g, w->pair);
    else
        add_collective(out, w->call);
}

static void add_comm(struct dt_strbuf *out, uint64_t comm)
{
    dt_strbuf_puts(out, " on ");
    dt_words_comm(out, comm);
}

/* Finds the call that says most about why a rank has not reached one in g: that of the wait that
 * delays it, else its last call in g, else its last call on DT_WORLD. Returns the group of that
 * call, and its slot there. */
static const struct dt_waitgroup *find_doing(const struct dt_hang_detect *d,
                                             const struct dt_waitgroup *g, uint32_t rank,
                                             uint32_t *slot)
{
    const struct dt_waitgroup *doing = dt_wait_graph_delaying_wait(&d->waits, g, rank, slot);
    int64_t member = dt_waitgroup_member(g, rank);

    if (doing)
        return doing;
    for (int64_t i = member; member >= 0 && i < g->nwaits; i += g->n) {
        if (!g->waits[i].call && !g->waits[i].pair)
            continue;
        *slot = (uint32_t)i;
        return g;
    }
    *slot = rank;
    return d->waits.groups;
}

static void add_awaited_rank(const struct dt_hang_detect *d, const struct dt_waitgroup *g,
                             uint32_t rank, struct dt_strbuf *out)
{
    const struct dt_plan_node *node = dt_plan_node_of(&d->core->plan, (int)rank);
    uint32_t slot;
    const struct dt_waitgroup *doing = find_doing(d, g, rank, &slot);
    const struct dt_wait *w = &doing->waits[slot];

    dt_strbuf_printf(out, "rank %u (%s, pid %u), which %s", rank,
                     dt_core_host_name(d->core, node->host), d->core->ranks.v[rank].pid,
                     d->waits.ranks[rank].stopped ? "is stopped by a signal and " : "");
    if (w->call == 0 && w->pair == 0) {
        dt_strbuf_puts(out, "has not called dt_init");
        return;
    }
    dt_strbuf_puts(out, dt_wait_call(w) ? "is in " : "was last in ");
    add_call(out, doing, w);
    if (doing != g)
        add_comm(out, doing->comm);
}

static void add_awaited(const struct dt_hang_detect *d, const struct dt_waitgroup *g,
                        const char *first, const struct dt_u32s *awaited, struct dt_strbuf *out)
{
    for (uint32_t i = 0; i < awaited->n && i < AWAITED_MAX; i++) {
        dt_strbuf_puts(out, i ? "; " : first);
        add_awaited_rank(d, g, awaited->v[i], out);
    }
    if (awaited->n > AWAITED_MAX)
        dt_strbuf_printf(out, "; and %u more", awaited->n - AWAITED_MAX);
}

/* Names the ranks at the end of the chain of waits, except those that b->awaited has named. */
static void add_chain_ends(const struct dt_hang_detect *d, const struct dt_waitgroup *g,
                           uint32_t slot, const struct blame *b, struct dt_strbuf *out)
{
    struct dt_u32s fresh = { dt_xcalloc(b->chain_ends.n + 1, sizeof *fresh.v), 0 };

    for (uint32_t i = 0; i < b->chain_ends.n; i++) {
        if (dt_u32s_find(&b->awaited, b->chain_ends.v[i]) < 0)
            fresh.v[fresh.n++] = b->chain_ends.v[i];
    }
    if (b->deadlock && b->awaited.n == 1 && b->awaited.v[0] == dt_waitgroup_rank(g, slot))
        dt_strbuf_puts(out, "; it waits for itself: a deadlock, unless another of its threads ends "
                            "it");
    else if (b->deadlock)
        dt_strbuf_puts(out, "; they wait for each other: a deadlock, unless another of their "
                            "threads ends it");
    else
        add_awaited(d, g, "; in the end for ", &fresh, out);
    free(fresh.v);
}

/* "ranks 0-2 have waited 10 s in all-reduce (call 7) for rank 3 (b, pid 77), which ..." */
static void describe(const struct dt_hang_detect *d, const struct dt_waitgroup *g, uint32_t slot,
                     uint64_t ms, const struct blame *b, struct dt_strbuf *out)
{
    struct dt_u32s with;

    dt_wait_graph_in_same_call(&d->waits, g, slot, &with);
    dt_words_ranks(out, &with);
    dt_strbuf_puts(out, with.n == 1 ? " has waited " : " have waited ");
    dt_words_duration(out, (double)ms / 1000);
    dt_strbuf_puts(out, " in ");
    add_call(out, g, &g->waits[slot]);
    if (g->comm)
        add_comm(out, g->comm);
    if (dt_wait_is_for_launch(&g->waits[slot])) {
        dt_strbuf_puts(out, ": NCCL does not return, or waits for another rank");
    } else if (dt_wait_is_for_gpu(&g->waits[slot])) {
        dt_strbuf_puts(out, ": its GPU has not finished the work that was queued before this call");
    } else if (b->awaited.n == 0) {
        dt_strbuf_puts(out, ", which every rank has entered: is it slow, or the network stalled?");
    } else {
        add_awaited(d, g, " for ", &b->awaited, out);
        add_chain_ends(d, g, slot, b, out);
    }
    free(with.v);
}

/* ---- what dtrun does ---- */

/* Fails the job: the culprit counts as lost. */
static void give_up(struct dt_hang_detect *d, uint32_t culprit, const char *text)
{
    free(d->text);
    d->text = dt_xstrdup(text);
    dt_deaths_add(d->deaths, &(struct dt_death){
                                 .hung = true,
                                 .rank = culprit,
                                 .code = -1,
                                 .step = -1,
                                 .time_ns = dt_core_now(d->core),
                             });
    dt_core_event(d->core, DT_EV_RANK_FAILED);
}

/* Only the calls on this communicator fail; the program decides how to go on. */
static void fail_comm(struct dt_hang_detect *d, struct dt_waitgroup *g, int code, uint32_t culprit,
                      const struct dt_strbuf *text)
{
    struct dt_msg_abort abort = {
        d->core->generation, g->comm, culprit, code, (char *)(uintptr_t)dt_strbuf_text(text), 0
    };

    g->failed = true;
    dt_say("%s", abort.text);
    dt_failed_calls_note(d->calls, &(struct dt_msg_failed){ abort.generation, abort.comm, culprit,
                                                            code, abort.text });
    dt_hostlinks_send_all(&d->core->links, DT_MSG_ABORT, &abort);
}

/* If no rank can be blamed for the wait, the rank that waits is blamed. */
static uint32_t find_culprit(const struct dt_waitgroup *g, uint32_t slot, const struct blame *b)
{
    if (b->awaited.n == 0)
        return dt_waitgroup_rank(g, slot);
    return b->deadlock ? b->awaited.v[0] : b->chain_ends.v[0];
}

static void end_calls(struct dt_hang_detect *d, struct dt_waitgroup *g, const struct dt_wait *w,
                      uint32_t culprit, struct dt_strbuf *text)
{
    if (w->limit_ms)
        dt_strbuf_printf(text, " (dt_comm_set_timeout %g)", w->limit_ms / 1000.0);
    else
        dt_strbuf_printf(text, " (--collective-timeout %d)", d->core->config->collective_timeout_s);
    if (w->limit_ms && g->comm)
        fail_comm(d, g, DT_HOSTSHM_TIMED_OUT, culprit, text);
    else
        give_up(d, culprit, dt_strbuf_text(text));
}

/* "ranks 0-2 called all-reduce (call 7), rank 3 broadcast (call 7)". */
static void describe_unlike(const struct dt_hang_detect *d, const struct dt_waitgroup *g,
                            uint32_t slot, const struct dt_u32s *unlike, struct dt_strbuf *out)
{
    uint64_t call = g->waits[slot].call;
    struct dt_u32s alike, others;
    uint32_t other = (uint32_t)dt_waitgroup_member(g, unlike->v[0]);

    dt_wait_graph_matching(&d->waits, g, slot, &alike);
    dt_wait_graph_matching(&d->waits, g, other, &others);
    dt_words_ranks(out, &alike);
    dt_strbuf_puts(out, " called ");
    add_collective(out, call);
    dt_strbuf_puts(out, ", ");
    dt_words_ranks(out, &others);
    dt_strbuf_puts(out, " ");
    add_collective(out, g->waits[other].call);
    if (g->waits[other].call == call)
        dt_strbuf_puts(out, " with other arguments");
    if (g->comm)
        add_comm(out, g->comm);
    free(alike.v);
    free(others.v);
}

/* Ranks notice calls that do not match when they receive from each other. With many hosts, each
 * rank may wait for one from which it never receives anything, so dtrun compares their calls, too.
 */
static bool end_unlike(struct dt_hang_detect *d, struct dt_waitgroup *g, uint32_t slot)
{
    struct dt_strbuf text = { 0 };
    struct dt_u32s unlike;

    dt_wait_graph_mismatching(&d->waits, g, slot, &unlike);
    if (unlike.n) {
        describe_unlike(d, g, slot, &unlike, &text);
        fail_comm(d, g, DT_HOSTSHM_MISMATCH, unlike.v[0], &text);
    }
    dt_strbuf_free(&text);
    free(unlike.v);
    return g->failed;
}

/* Returns whether the wait that the user was last warned of still lasts. Then dtrun does not warn
 * of the waits that began together with it: a check may find any of them first. */
static bool has_warned(const struct dt_waitgroup *g)
{
    return g->warned_of && dt_wait_call(&g->waits[g->warned]) == g->warned_of;
}

static void judge(struct dt_hang_detect *d, struct dt_waitgroup *g, uint32_t slot)
{
    const struct dt_wait *w = &g->waits[slot];
    uint32_t limit = dt_wait_limit(w, limit_ms(d));
    uint64_t ms = dt_wait_graph_waited_ms(&d->waits, g, slot);
    uint64_t warn_ms = limit && limit / 2 < WARN_MS ? limit / 2 : WARN_MS;
    bool over = limit && ms >= limit;
    struct dt_strbuf text = { 0 };
    struct blame b;

    if (!over && (ms < warn_ms || has_warned(g)))
        return;
    g->warned_of = dt_wait_call(w);
    g->warned = slot;
    dt_wait_graph_awaited(&d->waits, g, slot, &b.awaited);
    b.deadlock = dt_wait_graph_chain_ends(&d->waits, g, slot, &b.chain_ends);
    describe(d, g, slot, ms, &b, &text);
    if (over)
        end_calls(d, g, w, find_culprit(g, slot, &b), &text);
    else
        dt_say("warning: %s", dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    free(b.chain_ends.v);
    free(b.awaited.v);
}

/* ---- checks ---- */

void dt_hang_detect_note(struct dt_hang_detect *d, const struct dt_hostlink *h,
                         const struct dt_msg_pong *m)
{
    const struct dt_plan_node *node = dt_plan_node_on(&d->core->plan, h->host);
    const struct dt_msg_step *steps = m->steps.v;
    const struct dt_msg_comm *comms = m->comms.v;
    uint64_t now = dt_core_now(d->core);

    if (!node || !dt_hostlink_has_ranks(h))
        return;
    d->waits.limits[h->host] = m->limit_ms;
    for (uint32_t i = 0; i < m->steps.n; i++) {
        if (steps[i].rank < d->core->ranks.np)
            d->waits.ranks[steps[i].rank].stopped = steps[i].stopped;
    }
    for (uint32_t i = 0; i < m->comms.n; i++)
        dt_wait_graph_note(&d->waits, &comms[i], &node->ranks, now);
    if (m->more && !d->said_more)
        dt_say("%s: ranks wait in calls on so many communicators that %u of them are not watched "
               "for now",
               dt_core_host_name(d->core, h->host), m->more);
    d->said_more |= m->more > 0;
}

bool dt_hang_detect_is_current(const struct dt_hang_detect *d, const struct dt_msg_pong *m)
{
    return dt_wait_graph_is_current(&d->waits, m->generation, m->ping_time_ns);
}

bool dt_hang_detect_limit(struct dt_hang_detect *d, const struct dt_hostlink *h, uint32_t ms)
{
    uint32_t *limit = &d->waits.limits[h->host], before = *limit;

    *limit = dt_hostshm_lesser_limit(before, ms);
    return *limit != before;
}

void dt_hang_detect_ask(const struct dt_hang_detect *d, struct dt_msg_ping *ping)
{
    dt_wait_graph_list_oldest(&d->waits, ASKED_MAX, &ping->comms);
}

void dt_hang_detect_watch(struct dt_hang_detect *d)
{
    if (d->core->state != DT_JOB_RUNNING)
        return;
    for (uint32_t r = 0; r < d->core->ranks.np; r++)
        d->waits.ranks[r].ended = d->core->ranks.v[r].ended;
    dt_wait_graph_tidy(&d->waits);
    for (uint32_t i = 0; i < d->waits.n && d->core->state == DT_JOB_RUNNING; i++) {
        struct dt_waitgroup *g = &d->waits.groups[i];
        int slot = g->failed ? -1 : dt_wait_graph_first_due(&d->waits, g, limit_ms(d));

        if (slot >= 0 && !end_unlike(d, g, (uint32_t)slot))
            judge(d, g, (uint32_t)slot);
    }
}

void dt_hang_detect_forget(struct dt_hang_detect *d)
{
    dt_wait_graph_forget(&d->waits, d->core->generation, dt_core_now(d->core));
}

uint64_t dt_hang_detect_look_ms(const struct dt_hang_detect *d)
{
    return dt_hostshm_lesser_limit(limit_ms(d), dt_wait_graph_least_limit(&d->waits)) /
           TICKS_A_LIMIT;
}

void dt_hang_detect_init(struct dt_hang_detect *d, struct dt_core *core, struct dt_deaths *deaths,
                         struct dt_failed_calls *calls)
{
    *d = (struct dt_hang_detect){ .core = core, .deaths = deaths, .calls = calls };
    dt_wait_graph_init(&d->waits, core->ranks.np, (uint32_t)core->config->hosts->n);
}

void dt_hang_detect_free(struct dt_hang_detect *d)
{
    dt_wait_graph_free(&d->waits);
    free(d->text);
}
