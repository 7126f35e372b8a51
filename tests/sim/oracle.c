/* The exit code that dtrun must have, by the rules of dtrun(1) and cause.h. The witness knows the
 * true time of every rank's death and every connection's end, and what the engine had been told
 * when it ended the ranks. Several codes are right only if the engine cannot know which of two
 * failures came first: its comparison of two hosts' clocks has an error, and it knows that a lost
 * host was alive only until it last heard from it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/error.h"
#include "tests/sim/world.h"

enum { UNSURE_MS = 2, GRACE_LATE_MS = 150, MISSED_MS = 5000, WARN_MS = 60000 };
enum { OUTAGE_S = 600 }; /* of a recovery, in which dtrun tries lost hosts again */

/* ---- notes ---- */

void sim_oracle_started(struct sim_world *w, uint32_t generation)
{
    struct sim_witness *x = &w->witness;

    x->generation = generation;
    x->ncauses = x->decided_causes = x->ended_well = 0;
    x->ended = x->nodes = x->running = 0;
    x->cut_off = x->pardoned = x->stopped_auxiliaries = x->restarting = x->graceful = x->preempted =
        false;
    x->ready = 0;
    sim_check_last_calls_complete(w);
    sim_reach_started(w);
    x->told_calls = x->owes_calls = x->world_failed = x->other_failed = x->ignored = false;
    x->lost_peer = x->missed.any = false;
    x->decided = 0;
}

/* A rank that has left has failed only if others wait for it, or one of them has noticed. */
static void forgive_leaving(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;
    bool needed = x->lost_peer;
    size_t n = 0;

    for (uint32_t r = 0; r < w->s->np; r++)
        needed |= w->known[r].met && !w->known[r].ended;
    for (size_t i = 0; i < x->ncauses; i++) {
        if (needed || x->causes[i].kind != SIM_BY_LEAVING)
            x->causes[n++] = x->causes[i];
    }
    x->ncauses = n;
}

void sim_oracle_decided(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (x->decided)
        return;
    x->decided = ++x->count;
    x->decided_ns = w->now_ns;
    forgive_leaving(w);
    x->decided_causes = x->ncauses;
    sim_restarts_decided(w);
    sim_check_decided(w);
}

void sim_oracle_order(struct sim_world *w, struct sim_order order)
{
    struct sim_witness *x = &w->witness;

    order.count = x->ordered = ++x->count;
    order.at_ns = w->now_ns;
    order.suspended_ns = x->suspended_ns;
    if (x->norders < SIM_ORDERS_MAX)
        x->orders[x->norders++] = order;
    sim_stopping_ordered(w);
}

static void add_cause(struct sim_world *w, struct sim_cause cause)
{
    struct sim_witness *x = &w->witness;

    if (x->ncauses < SIM_CAUSES_MAX)
        x->causes[x->ncauses++] = cause;
}

bool sim_is_exit_grace_over(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return w->s->exit_grace_s && x->ended_well > 0 && x->ended < w->s->np && !x->ncauses &&
           !x->decided && x->running == x->nodes &&
           w->now_ns - x->first_end_ns >= (uint64_t)w->s->exit_grace_s * SIM_S;
}

/* Puts the event off until dtrun has had time to act on what is due. It acts later if it has stood
 * still, or if ranks are still being started. */
static bool is_early(struct sim_world *w, struct sim_event *e, uint64_t due_ns)
{
    uint64_t all_run_ns = w->witness.all_run_ns;
    uint64_t from_ns = due_ns > w->standing_until ? due_ns : w->standing_until;
    uint64_t acts_ns = (from_ns > all_run_ns ? from_ns : all_run_ns) + GRACE_LATE_MS * SIM_MS;

    if (w->now_ns >= acts_ns)
        return false;
    sim_later(w, acts_ns - w->now_ns, *e);
    return true;
}

static void expect_exit_grace(struct sim_world *w, struct sim_event *e)
{
    uint64_t due_ns = w->witness.first_end_ns + (uint64_t)w->s->exit_grace_s * SIM_S;

    if (w->witness.generation != e->n || is_early(w, e, due_ns))
        return;
    if (w->witness.norders == 0 && sim_is_exit_grace_over(w))
        sim_broken(w, "--exit-grace is over, and ranks still run");
}

/* Whether the user is to be warned of ranks that still run. dtrun knows about linked ranks that
 * others do not wait for them. */
static bool is_to_warn(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    for (uint32_t r = 0; r < w->s->np; r++) {
        if (w->known[r].met)
            return false;
    }
    return !w->s->exit_grace_s && !x->warned && x->ended_well > 0 && x->ended < w->s->np &&
           !x->ncauses && !x->decided && !x->norders && x->running == x->nodes &&
           w->now_ns - x->first_end_ns >= WARN_MS * SIM_MS;
}

void sim_check_warned(struct sim_world *w, const char *line)
{
    if (!strstr(line, "(--exit-grace SECONDS ends such a job)"))
        return;
    if (!is_to_warn(w))
        sim_broken(w, "dtrun warns of ranks that still run, and must not");
    w->witness.warned = true;
}

static void expect_warning(struct sim_world *w, struct sim_event *e)
{
    if (w->witness.generation != e->n || is_early(w, e, w->witness.first_end_ns + WARN_MS * SIM_MS))
        return;
    if (is_to_warn(w))
        sim_broken(w, "dtrun does not warn of ranks that still run");
}

static void note_first_end(struct sim_world *w)
{
    w->witness.first_end_ns = w->now_ns;
    sim_later(w, (WARN_MS + GRACE_LATE_MS) * SIM_MS,
              (struct sim_event){
                  .act = expect_warning, .n = w->witness.generation, .for_engine = true });
    sim_later(w, (uint64_t)w->s->exit_grace_s * SIM_S + GRACE_LATE_MS * SIM_MS,
              (struct sim_event){
                  .act = expect_exit_grace, .n = w->witness.generation, .for_engine = true });
}

/* Whether ranks of MPI wait for one that is absent, and nothing else ends them. */
static bool is_any_missed(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return x->missed.any && !x->ncauses && !x->decided && !x->norders && x->running == x->nodes;
}

static bool is_missed_for_long(const struct sim_world *w)
{
    return w->now_ns - w->witness.missed.told_ns >= MISSED_MS * SIM_MS;
}

void sim_oracle_missed(struct sim_world *w)
{
    uint32_t rank = w->witness.missed.rank;

    if (!is_any_missed(w))
        return;
    if (!is_missed_for_long(w))
        sim_broken(w, "rank %u counts as failed although others have waited less than 5 s", rank);
    add_cause(w, (struct sim_cause){
                     .kind = SIM_BY_MPI, .exited = true, .host = w->known[rank].host, .code = 1 });
}

static void expect_missed(struct sim_world *w, struct sim_event *e)
{
    if (w->witness.generation != e->n || !is_any_missed(w) ||
        is_early(w, e, w->witness.missed.told_ns + MISSED_MS * SIM_MS))
        return;
    if (is_missed_for_long(w))
        sim_broken(w, "ranks of MPI still wait for rank %u", w->witness.missed.rank);
}

static void note_missed(struct sim_world *w)
{
    struct sim_missed *m = &w->witness.missed;
    bool before = m->any, wait = false;

    m->rank = w->s->np;
    for (uint32_t r = w->s->np; r-- > 0;) {
        wait |= w->known[r].in_mpi && !w->known[r].ended;
        m->rank = w->known[r].absent ? r : m->rank;
    }
    m->any = wait && m->rank < w->s->np;
    if (!m->any || before)
        return;
    m->told_ns = w->now_ns;
    sim_later(
        w, (MISSED_MS + GRACE_LATE_MS) * SIM_MS,
        (struct sim_event){ .act = expect_missed, .n = w->witness.generation, .for_engine = true });
}

void sim_oracle_mpi_state(struct sim_world *w, const struct dt_msg_mpi_state *m)
{
    if (m->generation != w->witness.generation)
        return;
    w->known[m->rank].in_mpi = m->inside;
    w->known[m->rank].finalized = !m->inside;
    note_missed(w);
}

/* Ranks that are stopped keep nobody waiting. */
void sim_oracle_suspended(struct sim_world *w, uint64_t ns)
{
    w->witness.first_end_ns += ns;
    w->witness.missed.told_ns += ns;
    w->witness.suspended_ns += ns;
}

static uint64_t minus_or_zero(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A rank that ignores a lost peer has failed, whatever its exit code. */
static bool is_well(const struct dt_msg_exit *m)
{
    return m->code == 0 && !(m->flags & DT_EXITED_PEER_LOST);
}

static int code_of(const struct dt_msg_exit *m)
{
    if (m->signo)
        return DT_EXIT_SIGNAL + m->signo;
    return m->code ? m->code : 1;
}

static bool has_left(const struct dt_msg_exit *m)
{
    return m->code == 0 && (m->flags & DT_EXITED_LINKED) && !(m->flags & DT_EXITED_FINALIZED);
}

static enum sim_cause_kind kind_of(const struct dt_msg_exit *m)
{
    if (m->flags & DT_EXITED_PEER_LOST)
        return SIM_BY_PEER;
    if (m->signo)
        return SIM_BY_SIGNAL;
    return has_left(m) ? SIM_BY_LEAVING : SIM_BY_EXIT;
}

static void count_end(struct sim_world *w, const struct dt_msg_exit *m)
{
    struct sim_witness *x = &w->witness;

    x->preempted |= m->code == DT_EXIT_PREEMPTED;
    x->ignored |= m->code == 0 && (m->flags & DT_EXITED_COMM_FAILED);
    x->lost_peer |= (m->flags & DT_EXITED_PEER_LOST) != 0;
    if (!w->known[m->rank].ended) {
        w->known[m->rank].told = true;
        w->known[m->rank].code = m->code;
        w->known[m->rank].signo = m->signo;
    }
    w->known[m->rank].ended = true;
    w->known[m->rank].absent = m->code == 0 && !w->known[m->rank].finalized;
    if (w->s->fences)
        note_missed(w);
    x->ended++;
    if (!is_well(m))
        return;
    if (++x->ended_well == 1)
        note_first_end(w);
    sim_auxiliaries_pardon(w);
}

void sim_oracle_exit(struct sim_world *w, const struct sim_conn *c, const struct dt_msg_exit *m)
{
    const struct sim_witness *x = &w->witness;
    bool auxiliary = sim_is_auxiliary(w, m->rank);
    uint64_t died_ns = w->now_ns - (sim_host_clock(w, c->host) - m->time_ns);
    uint64_t unsure_ns = c->most_ns + UNSURE_MS * SIM_MS;

    if (m->generation != x->generation || (auxiliary && sim_are_ranks_through(w)))
        return;
    if (!auxiliary)
        count_end(w, m);
    if ((is_well(m) && !has_left(m)) || (m->flags & DT_EXITED_STOPPED))
        return;
    if (is_well(m) && sim_are_ranks_through(w) && !x->lost_peer) /* the last one leaves nobody */
        return;
    add_cause(w, (struct sim_cause){ .kind = kind_of(m),
                                     .auxiliary = auxiliary,
                                     .exited = !m->signo,
                                     .host = c->host->index,
                                     .code = code_of(m),
                                     .from_ns = minus_or_zero(died_ns, unsure_ns),
                                     .to_ns = died_ns + unsure_ns });
}

/* The host was lost some time after dtrun last heard from it. If dtrun itself stood still, the host
 * may count as alive for too long. */
void sim_oracle_lost(struct sim_world *w, const struct sim_conn *c)
{
    uint64_t to_ns = w->now_ns;

    for (uint32_t r = 0; r < w->s->np; r++)
        w->known[r].ended |= w->known[r].host == c->host->index;
    if (sim_are_ranks_through(w))
        return;
    if (w->standing_until <= c->heard_ns && c->lost_ns >= c->heard_ns)
        to_ns = c->lost_ns;
    else if (w->standing_until <= c->heard_ns && c->host->cut_from >= c->heard_ns)
        to_ns = c->host->cut_from;
    add_cause(w, (struct sim_cause){ .kind = SIM_BY_LOSS,
                                     .host = c->host->index,
                                     .code = DT_EXIT_LAUNCH,
                                     .from_ns = c->heard_ns,
                                     .to_ns = to_ns });
}

/* A failure that happens when the engine acts on it. */
static void add_cause_now(struct sim_world *w, enum sim_cause_kind kind, const struct sim_host *h,
                          int code)
{
    add_cause(w, (struct sim_cause){ .kind = kind,
                                     .host = h->index,
                                     .code = code,
                                     .from_ns = w->now_ns,
                                     .to_ns = w->now_ns });
}

void sim_oracle_hang(struct sim_world *w, const struct sim_host *h)
{
    add_cause_now(w, SIM_BY_HANG, h, DT_EXIT_TIMEOUT); /* the engine gives the rank up */
}

void sim_oracle_departure(struct sim_world *w, const struct sim_host *h)
{
    add_cause_now(w, SIM_BY_DEPARTURE, h, DT_EXIT_LAUNCH);
}

void sim_oracle_refusal(struct sim_world *w, int code)
{
    add_cause(w, (struct sim_cause){ .kind = SIM_BY_REFUSAL, .code = code });
}

bool sim_has_refusal(const struct sim_witness *x)
{
    for (size_t i = 0; i < x->ncauses; i++) {
        if (x->causes[i].kind == SIM_BY_REFUSAL)
            return true;
    }
    return false;
}

bool sim_is_second_name(const struct sim_world *w, const struct sim_host *h)
{
    return w->s->twin && h->index == w->s->twin && !h->generation && !h->back &&
           (h->second || !h[-1].taken);
}

/* Whether this is a second name of a host that dtrun may use again. */
static bool is_used_twice(const struct sim_world *w, const struct sim_host *h)
{
    const struct sim_host *one = h - 1;

    return w->s->twin && h->index == w->s->twin && sim_is_connected(one) && !one->left;
}

/* Whether a host that the job needed has no connection, and a new one has failed; or it is a second
 * name of a host that the job uses. */
static bool is_out_of_use(const struct sim_world *w, const struct sim_host *h)
{
    return sim_is_second_name(w, h) || is_used_twice(w, h) || h->left ||
           (h->conn && !h->conn->open && (h->lost || h->conn->opened > w->witness.decided));
}

/* Whether dtrun expects that a connection may succeed. Only while it has one does it know that the
 * host is another name of one that it uses. */
static bool may_be_reached(const struct sim_host *h)
{
    return !h->conn || (!h->conn->open && !h->taken);
}

/* Whether the job cannot go on without the hosts that are lost. for_good: it could not even if
 * those that may come back did. */
static bool are_hosts_lost(const struct sim_world *w, bool for_good)
{
    uint32_t lost = 0, slots = 0;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *h = &w->hosts[i];
        bool gone = is_out_of_use(w, h) && !(for_good && may_be_reached(h));

        lost += gone;
        slots += gone ? 0 : (uint32_t)w->s->slots[i % SIM_HOSTS_MAX];
    }
    return w->s->stop_on_loss ? lost > 0 : !sim_suffice(w->s, slots);
}

void sim_check_outage(struct sim_world *w)
{
    if (w->s->stop_on_loss || !are_hosts_lost(w, false) || are_hosts_lost(w, true))
        sim_broken(w, "dtrun waits for lost hosts in vain, or need not");
}

void sim_oracle_try_again(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        if (may_be_reached(&w->hosts[i]))
            w->hosts[i].lost = w->hosts[i].left = w->hosts[i].second = false;
    }
    w->witness.retried = ++w->witness.count;
}

/* Whether hosts are lost, and dtrun need not wait for them, or no longer. */
static bool are_hosts_given_up(const struct sim_world *w)
{
    bool late = w->now_ns - w->witness.recoveries.began_ns >= OUTAGE_S * SIM_S;

    return are_hosts_lost(w, !late && !w->s->stop_on_loss);
}

void sim_oracle_finished(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (x->finished)
        sim_broken(w, "output ends twice");
    if (!x->cut_off) /* else the start was put off, and connections since then count */
        sim_oracle_decided(w);
    x->lost_for_good = are_hosts_given_up(w);
    sim_oracle_decided(w);
    x->finished = ++x->count;
}

/* ---- which failure counts ---- */

/* Signals, lost hosts and hangs come before exits, exits before ranks that only left, and these
 * before the consequences of a lost peer. */
static int class_of(const struct sim_cause *c)
{
    switch (c->kind) {
    case SIM_BY_REFUSAL:
        return 0;
    case SIM_BY_SIGNAL:
    case SIM_BY_LOSS:
    case SIM_BY_DEPARTURE:
    case SIM_BY_HANG:
        return 1;
    case SIM_BY_EXIT:
        return 2;
    case SIM_BY_LEAVING:
    case SIM_BY_MPI:
        return 3;
    default:
        return 4;
    }
}

static bool comes_before(const struct sim_cause *a, const struct sim_cause *b)
{
    if (class_of(a) != class_of(b))
        return class_of(a) < class_of(b);
    return a->to_ns < b->from_ns;
}

/* Whether c may have been the first failure. */
static bool counts(const struct sim_witness *x, const struct sim_cause *c)
{
    for (size_t i = 0; i < x->decided_causes; i++) {
        if (comes_before(&x->causes[i], c))
            return false;
    }
    return true;
}

uint64_t sim_oracle_blamed(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;
    uint64_t hosts = 0;

    for (size_t i = 0; i < x->decided_causes; i++) {
        if (counts(x, &x->causes[i]))
            hosts |= UINT64_C(1) << x->causes[i].host % 64;
    }
    return hosts;
}

/* Whether c ends the job without a restart. */
static bool is_final(const struct sim_witness *x, const struct sim_cause *c)
{
    bool exited = c->kind == SIM_BY_EXIT || c->kind == SIM_BY_PEER;

    return !(c->exited ? x->restarts.allowed_after_exit : x->restarts.allowed) ||
           c->kind == SIM_BY_REFUSAL || (exited && c->code == DT_EXIT_PREEMPTED && !c->auxiliary);
}

bool sim_oracle_allows(const struct sim_world *w, bool restart)
{
    const struct sim_witness *x = &w->witness;

    for (size_t i = 0; i < x->decided_causes; i++) {
        if (counts(x, &x->causes[i]) && is_final(x, &x->causes[i]) != restart)
            return true;
    }
    return false;
}

/* ---- the verdict ---- */

struct verdict {
    const struct sim_world *w;
    int code;
    char *expected;
    size_t size;
};

static bool expect(const struct verdict *v, int code, const char *why)
{
    size_t n = strlen(v->expected);

    snprintf(v->expected + n, v->size - n, "%s%d (%s)", n ? " or " : "", code, why);
    return v->code == code;
}

static bool order_decides(const struct verdict *v, const struct sim_order *o)
{
    if (o->signo && v->w->witness.preempted)
        return expect(v, DT_EXIT_PREEMPTED, "a signal, and a rank was preempted");
    return expect(v, o->code, o->signo ? "a signal" : o->late ? "the output" : "a time limit");
}

/* The first order that came before the job's end was settled, or NULL. */
static const struct sim_order *order_before(const struct sim_witness *x, uint64_t settled)
{
    for (size_t i = 0; i < x->norders; i++) {
        if (x->orders[i].count < settled)
            return &x->orders[i];
    }
    return NULL;
}

/* Whether the exit code is right if c was the first failure. */
static bool accepts_failure(const struct verdict *v, const struct sim_cause *c)
{
    const struct sim_witness *x = &v->w->witness;
    bool final = is_final(x, c);
    const struct sim_order *o = order_before(x, final ? x->decided : x->finished);

    if (o)
        return order_decides(v, o);
    if (final)
        return expect(v, c->code, "the first failure");
    return x->lost_for_good && expect(v, DT_EXIT_LAUNCH, "hosts are lost for good");
}

static bool accepts_any_failure(const struct verdict *v)
{
    const struct sim_witness *x = &v->w->witness;
    bool accepted = false;

    for (size_t i = 0; i < x->decided_causes; i++) {
        if (counts(x, &x->causes[i]))
            accepted |= accepts_failure(v, &x->causes[i]);
    }
    if (!accepted && !v->expected[0])
        snprintf(v->expected, v->size, "a code at all: a restart is due");
    return accepted;
}

/* All went well, but before dtrun has ended a signal may arrive or the output may fail. */
static bool accepts_success(const struct verdict *v)
{
    const struct sim_witness *x = &v->w->witness;

    if (sim_are_errors_ignored(v->w))
        return expect(v, DT_EXIT_LAUNCH, "a rank has ignored that calls had failed");
    for (size_t i = 0; i < x->norders; i++) {
        if (x->orders[i].late)
            return order_decides(v, &x->orders[i]);
    }
    if (x->limit_over && sim_has_dropped(v->w))
        return expect(v, DT_EXIT_TIMEOUT, "the last output was not read in time");
    return expect(v, 0, "all ranks have exited with 0");
}

/* Whether the first plan takes one machine for two hosts. */
static bool are_twins_planned(const struct sim_world *w)
{
    size_t found = 0;

    for (size_t i = 0; i < w->plan.nnodes && w->s->twin; i++)
        found += w->plan.nodes[i].host == w->s->twin || w->plan.nodes[i].host == w->s->twin - 1;
    return found == 2;
}

bool sim_oracle_accepts(const struct sim_world *w, int code, char *expected, size_t size)
{
    const struct sim_witness *x = &w->witness;
    const struct verdict v = { w, code, expected, size };
    const struct sim_order *o = order_before(x, x->finished);

    expected[0] = '\0';
    if (x->decided_causes > 0)
        return accepts_any_failure(&v);
    if (o)
        return order_decides(&v, o);
    if (x->cut_off && x->lost_for_good)
        return expect(&v, DT_EXIT_LAUNCH, "hosts are lost for good");
    if (x->generation == 0 && (x->lost_early || are_twins_planned(w)))
        return expect(&v, DT_EXIT_LAUNCH, "a host could not be used");
    if (x->generation > 0 && x->ended_well == w->s->np)
        return accepts_success(&v);
    snprintf(expected, size, "a code at all: nothing has ended the job");
    return false;
}
