/* What dtrun is to exit with, by the rules of dtrun(1): its sections on failures and on the exit
 * status. The witness knows when each rank died by the true clock, and what dtrun had been told
 * when it ended the ranks. Where the manual leaves freedom, as between a rank that exits and one
 * that is killed at about the same time, each of them is right. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

enum { FRUITLESS_MAX = 3, PREEMPTED = 75, UNSURE_MS = 2 };

/* "three restarts in a row without a newer checkpoint end it" */
static bool may_restart(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;
    bool fruitless = x->restarts > 0 && x->newest <= x->newest_then;

    if (w->s->max_restarts >= 0)
        return x->restarts < (uint32_t)w->s->max_restarts;
    return x->saved && !(x->met && fruitless && x->fruitless >= FRUITLESS_MAX);
}

void sim_oracle_started(struct sim_world *w, const struct dt_msg_start *m)
{
    struct sim_witness *x = &w->witness;

    if (m->restart_count != x->restarts) {
        x->fruitless = x->restarts == 0 || x->newest > x->newest_then ? 1 : x->fruitless + 1;
        x->newest_then = x->newest;
    }
    x->generation = m->generation;
    x->restarts = m->restart_count;
    x->ncauses = x->decided_causes = x->ended_well = 0;
    x->is_decided = x->trouble = false;
}

void sim_oracle_decided(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (x->is_decided)
        return;
    x->is_decided = true;
    x->decided_ns = w->now_ns;
    x->decided_causes = x->ncauses;
    x->may_restart = may_restart(w);
}

void sim_oracle_cause(struct sim_world *w, struct sim_cause cause)
{
    struct sim_witness *x = &w->witness;

    if (x->ncauses < SIM_CAUSES_MAX)
        x->causes[x->ncauses++] = cause;
}

/* An agent's clock is known as well as its messages are quick. */
static uint64_t true_time(const struct sim_world *w, const struct sim_conn *c, uint64_t clock_ns)
{
    return w->now_ns - (sim_host_clock(w, c->host) - clock_ns);
}

void sim_oracle_exit(struct sim_world *w, const struct sim_conn *c, const struct dt_msg_exit *m)
{
    struct sim_witness *x = &w->witness;
    struct sim_cause cause = { .at_ns = true_time(w, c, m->time_ns),
                               .unsure_ns = c->most_ns + UNSURE_MS * SIM_MS,
                               .code = m->signo ? 128 + m->signo : m->code };

    if (m->generation != x->generation)
        return;
    x->preempted |= m->code == PREEMPTED && x->signo;
    x->ended_well += m->code == 0;
    if (m->code == 0 || (m->flags & DT_EXITED_STOPPED))
        return;
    cause.kind = m->flags & DT_EXITED_PEER_LOST ? SIM_BY_PEER
                 : m->signo                     ? SIM_BY_SIGNAL
                                                : SIM_BY_EXIT;
    sim_oracle_cause(w, cause);
}

/* ---- which causes count ---- */

static bool is_surely_later(const struct sim_witness *x, size_t n, const struct sim_cause *c)
{
    for (size_t i = 0; i < n; i++) {
        const struct sim_cause *other = &x->causes[i];

        if (other->kind == c->kind && (c->kind == SIM_BY_SIGNAL || c->kind == SIM_BY_EXIT) &&
            other->at_ns + other->unsure_ns + c->unsure_ns < c->at_ns)
            return true;
    }
    return false;
}

static bool has_kind(const struct sim_witness *x, size_t n, bool by_peer)
{
    for (size_t i = 0; i < n; i++) {
        if ((x->causes[i].kind == SIM_BY_PEER) == by_peer)
            return true;
    }
    return false;
}

/* A rank that failed because of a peer counts only where nothing is known of that peer. */
static bool counts(const struct sim_witness *x, size_t n, const struct sim_cause *c)
{
    return (c->kind != SIM_BY_PEER || !has_kind(x, n, false)) && !is_surely_later(x, n, c);
}

static bool is_cause(const struct sim_witness *x, size_t n, int code)
{
    for (size_t i = 0; i < n; i++) {
        if (x->causes[i].code == code && counts(x, n, &x->causes[i]))
            return true;
    }
    return false;
}

/* Some end the job whatever was said of restarts: a refusal, a rank that exits with 75. */
static bool is_final_cause(const struct sim_witness *x, size_t n, int code)
{
    for (size_t i = 0; i < n; i++) {
        const struct sim_cause *c = &x->causes[i];

        if (c->code == code && counts(x, n, c) &&
            (c->kind == SIM_BY_REFUSAL || (c->kind == SIM_BY_EXIT && code == PREEMPTED)))
            return true;
    }
    return false;
}

/* ---- the verdict ---- */

static bool may_follow_failure(const struct sim_world *w, int code, char *expected, size_t size)
{
    const struct sim_witness *x = &w->witness;
    size_t n = x->decided_causes;

    snprintf(expected, size, "the code of %s (restarts %u, %s)",
             x->may_restart ? "a refusal, a preemption or a host that is lost for good"
                            : "the first failure",
             x->restarts, x->may_restart ? "one more is allowed" : "no more is allowed");
    if (is_final_cause(x, n, code))
        return true;
    return x->may_restart ? code == 125 && x->trouble : is_cause(x, n, code);
}

/* What ends a job by itself: a signal, or a limit. The first counts; of one moment, each. Returns
 * when it was, or UINT64_MAX. */
static uint64_t first_order_ns(const struct sim_witness *x)
{
    const uint64_t orders[] = { x->signo ? x->signo_ns : 0, x->limit_ns, x->start_limit_ns };
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (orders[i] && orders[i] < first)
            first = orders[i];
    }
    return first;
}

static bool is_ordered(const struct sim_witness *x, int code)
{
    uint64_t at_ns = first_order_ns(x);
    bool by_signal = x->signo && x->signo_ns == at_ns;

    return (by_signal && (code == 128 + x->signo || (code == PREEMPTED && x->preempted))) ||
           (x->limit_ns == at_ns && code == 124) || (x->start_limit_ns == at_ns && code == 125);
}

/* Without an order. */
static bool is_outcome(const struct sim_world *w, int code, char *expected, size_t size)
{
    const struct sim_witness *x = &w->witness;

    if (x->decided_causes > 0)
        return may_follow_failure(w, code, expected, size);
    if (x->generation == 0 || x->ended_well < w->s->np) {
        snprintf(expected, size, "125: hosts cannot be used");
        return code == 125 && x->trouble;
    }
    snprintf(expected, size, "0: all ranks have ended with 0");
    return code == 0;
}

/* What has been decided for good is not changed by an order; that all went well is, by a signal. */
bool sim_oracle_accepts(const struct sim_world *w, int code, char *expected, size_t size)
{
    const struct sim_witness *x = &w->witness;
    uint64_t at_ns = first_order_ns(x);
    bool failed = x->decided_causes > 0;
    bool well = !failed && x->generation > 0 && x->ended_well == w->s->np;
    bool over = failed ? !x->may_restart : well || x->generation == 0;
    bool counts =
        at_ns < x->decided_ns || (at_ns != UINT64_MAX && (!over || (well && at_ns == x->signo_ns)));
    bool may_count = counts || at_ns == x->decided_ns;

    if (may_count && is_ordered(x, code))
        return true;
    if (counts && at_ns != x->decided_ns && !(failed && at_ns > x->decided_ns)) {
        snprintf(expected, size, "that of the signal or limit");
        return false;
    }
    return is_outcome(w, code, expected, size);
}
