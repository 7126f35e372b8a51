/* Ranks that hang while the others wait for them in a call: what agents report, and when
 * --collective-timeout must end the job. */
#include <inttypes.h>

#include "launcher/base/error.h"
#include "launcher/base/mem.h"
#include "runtime/wire/callkind.h"
#include "runtime/wire/hostshm.h"
#include "tests/sim/world.h"

enum { CALL = 100, LATE_NS = 4 * 1000 * 1000 * 1000ull, TICK_MS = 50, AGAIN_MS = 1 };

static uint32_t collective_timeout_ms(const struct sim_world *w)
{
    return (uint32_t)w->s->collective_timeout_s * 1000;
}

/* How long ranks may wait for one that hangs. The program's own limit comes first. */
static uint64_t limit_ns(const struct sim_world *w)
{
    return (w->s->call_limit_ms ? w->s->call_limit_ms : collective_timeout_ms(w)) * SIM_MS;
}

static bool waits(const struct sim_world *w, const struct sim_agent *a, const struct sim_rank *r)
{
    return w->hang.generation == a->generation && r->alive && r->next_ns && !r->stubborn &&
           !r->failed;
}

/* ---- what an agent reports ---- */

void sim_agent_tell_waits(struct sim_world *w, const struct sim_agent *a, struct dt_msg_pong *pong)
{
    struct dt_msg_called *called;
    struct dt_msg_comm *comm;

    pong->limit_ms = a->limit_ms;
    if (!w->s->collective_timeout_s || a->phase != SIM_RUNNING)
        return;
    called = dt_xcalloc(a->n, sizeof *called);
    comm = dt_xcalloc(1, sizeof *comm);
    for (uint32_t i = 0; i < a->n; i++) {
        const struct sim_rank *r = &a->ranks[i];
        bool inside = waits(w, a, r);

        if (inside)
            pong->limit_ms = dt_hostshm_lesser_limit(pong->limit_ms, w->s->call_limit_ms);

        if (r->alive && r->next_ns)
            called[comm->ranks.n++] = (struct dt_msg_called){
                .rank = r->rank,
                .call = (uint64_t)(inside ? CALL : CALL - 1) << 8 |
                        (inside ? DT_HOSTSHM_INSIDE : 0) | DT_CALL_ALL_REDUCE,
                .limit_ms = inside ? w->s->call_limit_ms : 0,
                .waited_ms = inside ? (uint32_t)((w->now_ns - w->hang.since_ns) / SIM_MS) : 0,
            };
    }
    comm->ranks.v = called;
    pong->comms = (struct dt_msg_list){ comm, 1 };
}

/* ---- limits of the program's own ---- */

/* Ranks lower their limit step by step. Agents report only the lowest. */
static void set_limit(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    uint32_t ms = (uint32_t)sim_between(&w->program, w->s->limit_ms, 2 * w->s->limit_ms);
    const struct sim_rank *r = sim_acting_process(w, e);

    if (!r || r->stubborn || r->failed || (a->limit_ms && a->limit_ms <= ms))
        return;
    a->limit_ms = ms;
    sim_agent_tell_limit(w, a, a->generation, ms);
}

void sim_agent_tell_limit(struct sim_world *w, struct sim_agent *a, uint32_t generation,
                          uint32_t ms)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m);

    m->limit = (struct dt_msg_limit){ generation, ms };
    sim_send(w, a, DT_MSG_LIMIT, m);
}

void sim_rank_sets_limits(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r)
{
    for (uint64_t n = w->s->limit_ms ? sim_below(&w->program, 3) : 0; n > 0; n--)
        sim_plan(w, a, r, sim_below(&w->program, w->s->work_ns), set_limit, 0);
}

/* ---- how often dtrun looks ---- */

/* "often enough to notice within a tenth (at least 50 ms)"; in any case four times a lease */
static uint64_t longest_tick_ms(const struct sim_world *w, uint32_t limit_ms)
{
    uint64_t beat_ms = (uint64_t)w->s->heartbeat_s * 1000 / 4;
    uint64_t limited_ms = limit_ms / 10 > TICK_MS ? limit_ms / 10 : TICK_MS;

    return limit_ms && limited_ms < beat_ms ? limited_ms : beat_ms;
}

/* A host has been silent for too long, so dtrun reads what has arrived, and looks again. */
static bool looks_again(const struct sim_world *w, uint64_t ms)
{
    const uint64_t limit_ns = (uint64_t)w->s->heartbeat_s * SIM_S;
    bool overdue = false;

    for (const struct sim_conn *c = w->conns; c; c = c->next)
        overdue |= c->open && c->greeted && w->now_ns - c->heard_ns >= limit_ns;
    return overdue && ms == AGAIN_MS;
}

void sim_check_tick(struct sim_world *w, uint64_t ms)
{
    struct sim_looks *l = &w->witness.looks;
    uint32_t least_ms = l->least_ms;
    uint64_t shortest_ms;

    least_ms = dt_hostshm_lesser_limit(least_ms, collective_timeout_ms(w));
    least_ms = dt_hostshm_lesser_limit(least_ms, w->s->call_limit_ms);
    shortest_ms = longest_tick_ms(w, least_ms) / 3;
    if (ms > longest_tick_ms(w, 0) || (ms < shortest_ms && !looks_again(w, ms)))
        sim_broken(w, "dtrun looks at its hosts after %" PRIu64 " ms", ms);
    if (l->due_ns > w->now_ns && w->now_ns + ms * SIM_MS > l->due_ns)
        sim_broken(w, "dtrun puts off the next look at its hosts by %" PRIu64 " ms",
                   (w->now_ns + ms * SIM_MS - l->due_ns) / SIM_MS);
    l->due_ns = w->now_ns + ms * SIM_MS;
    l->set++;
}

void sim_check_limit_told(struct sim_world *w, const struct dt_msg_limit *m)
{
    struct sim_looks *l = &w->witness.looks;

    l->told_ms = m->generation == w->witness.generation ? m->ms : 0;
    l->set_before = l->set;
    if (l->told_ms && (!l->least_ms || m->ms < l->least_ms))
        l->least_ms = m->ms;
}

void sim_check_limit_handled(struct sim_world *w)
{
    const struct sim_looks *l = &w->witness.looks;

    if (!l->told_ms && l->set != l->set_before)
        sim_broken(w, "dtrun acts on a limit of an old generation");
    if (l->told_ms && l->due_ns > w->now_ns + longest_tick_ms(w, l->told_ms) * SIM_MS)
        sim_broken(w, "dtrun looks at its hosts in %" PRIu64 " ms, and calls may wait for %u ms",
                   (l->due_ns - w->now_ns) / SIM_MS, l->told_ms);
}

/* ---- what must follow ---- */

/* Whether nothing has kept dtrun from seeing the hang. */
static bool is_quiet(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;
    uint64_t since_ns = w->hang.since_ns;

    if (x->ncauses || x->decided || x->norders || x->running < x->nodes ||
        w->standing_until > since_ns)
        return false;
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *h = &w->hosts[i];
        const struct sim_conn *c = h->conn;

        if (h->generation != x->generation)
            continue;
        if (!c->open || c->over || c->dead[SIM_TO_AGENT] || c->dead[SIM_TO_ENGINE] ||
            h->frozen_until > since_ns || h->cut_until > since_ns || h->slow_until > since_ns)
            return false;
    }
    return true;
}

static bool does_any_wait(const struct sim_world *w)
{
    for (const struct sim_agent *a = w->agents; a; a = a->next) {
        for (uint32_t i = 0; i < a->n; i++) {
            if (waits(w, a, &a->ranks[i]))
                return true;
        }
    }
    return false;
}

static void expect_end(struct sim_world *w, struct sim_event *e)
{
    if (w->witness.generation == e->n && w->hang.generation == e->n && !w->hang.ended &&
        is_quiet(w) && does_any_wait(w))
        sim_broken(w, "ranks still wait for one that hangs, and --collective-timeout is over");
}

void sim_rank_hangs(struct sim_world *w, struct sim_agent *a, struct sim_rank *r)
{
    r->stubborn = true;
    if (sim_is_auxiliary(w, r->rank))
        return;
    w->stuck_generation = a->generation;
    if (!w->s->linked || !w->s->collective_timeout_s || !r->next_ns ||
        w->hang.generation == a->generation)
        return;
    w->hang = (struct sim_hang){ .generation = a->generation, .since_ns = w->now_ns };
    sim_later(w, limit_ns(w) + limit_ns(w) / 10 + LATE_NS,
              (struct sim_event){ .act = expect_end, .n = a->generation, .for_engine = true });
}

/* The host on which the rank hangs, or NULL. */
static const struct sim_host *find_hanging(const struct sim_world *w, uint32_t rank)
{
    for (const struct sim_agent *a = w->agents; a; a = a->next) {
        for (uint32_t i = 0; a->generation == w->hang.generation && i < a->n; i++) {
            if (a->ranks[i].rank == rank && a->ranks[i].stubborn)
                return a->host;
        }
    }
    return NULL;
}

/* ABORT says how the rank to blame has ended, if dtrun knows. */
static void check_ending(struct sim_world *w, const struct dt_msg_abort *m)
{
    const struct sim_known *k = &w->known[m->rank];
    uint32_t ending = k->told ? dt_hostshm_ending_of(k->code, k->signo) : 0;
    bool lost = !w->hosts[k->host].conn->open; /* as a host: the rank may have ended well before */

    if (m->code == DT_HOSTSHM_PEER_DIED && !m->text[0] && m->ending != ending && !lost &&
        !sim_are_ranks_through(w))
        sim_broken(w, "ABORT says that rank %u has ended with %#x, not %#x", m->rank, m->ending,
                   ending);
}

void sim_check_abort(struct sim_world *w, const struct dt_msg_abort *m)
{
    const struct sim_host *h = find_hanging(w, m->rank);

    check_ending(w, m);

    if (m->code != DT_HOSTSHM_TIMED_OUT || w->hang.ended == m->generation)
        return;
    if (m->generation != w->witness.generation || w->hang.generation != m->generation)
        sim_broken(w, "dtrun reports a hang in generation %u, in which no rank hangs",
                   m->generation);
    else if (!h)
        sim_broken(w, "dtrun says that rank %u hangs, and it does not", m->rank);
    else if (w->now_ns - w->hang.since_ns < limit_ns(w))
        sim_broken(w, "dtrun gives rank %u up after %" PRIu64 " ms", m->rank,
                   (w->now_ns - w->hang.since_ns) / SIM_MS);
    w->hang.ended = m->generation;
    if (h)
        sim_oracle_hang(w, h);
}
