/* What must hold after every event: what the engine may send, close and print, and when. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/error.h"
#include "tests/sim/world.h"

enum {
    PATIENCE_NS = 2 * 1000 * 1000 * 1000, /* for a job that is told to end */
    FENCE_MARGIN_MS = 500,
    SAID_MAX = 3, /* times that dtrun says a line, without those of a restart */
};

/* ---- what dtrun sends ---- */

/* Ranks whose agent was never sent GO wait at the gate until the agent ends them. */
static bool may_run(const struct sim_agent *a)
{
    return a->left && a->conn->went == a->generation;
}

/* No rank starts in place of a silent agent's ranks, and none runs anywhere, while a rank of an
 * earlier generation may still run. */
static void check_alone(struct sim_world *w, uint32_t generation, bool run)
{
    for (const struct sim_agent *a = w->agents; a; a = a->next) {
        if (may_run(a) && a->generation < generation && a->fenced_in_time &&
            (run || a->conn->given_up) && !sim_agent_is_fenced(w, a))
            sim_broken(w, "ranks of generation %u %s while those of %u on %s are alive", generation,
                       run ? "run" : "start", a->generation, a->host->name);
    }
}

/* The job waits no longer than necessary: only for leases of agents whose ranks may run, and for
 * the delay of a restart. */
void sim_check_fence(struct sim_world *w, uint64_t until_ns)
{
    uint64_t due_ns = sim_restarts_due_ns(w);
    uint64_t latest_ns = due_ns > w->now_ns ? due_ns : w->now_ns;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        uint64_t fenced_ns =
            w->hosts[i].orphans_ns + (uint64_t)w->s->heartbeat_s * SIM_S + FENCE_MARGIN_MS * SIM_MS;

        if (w->hosts[i].orphans_ns && fenced_ns > latest_ns)
            latest_ns = fenced_ns;
    }
    if (until_ns > latest_ns + SIM_MS)
        sim_broken(w, "dtrun waits %" PRIu64 " ms longer than necessary",
                   (until_ns - latest_ns) / SIM_MS);
}

/* A host whose connection has ended is left out only after a new connection has failed, or because
 * failures keep beginning there. Hosts that dtrun does not need it neither names nor loses, also if
 * they were lost before it tried all again. */
static void check_left_out(struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];

        if (!h->conn || h->conn->open || h->lost || h->left || h->out || h->without <= x->retried)
            continue;
        h->lost = x->outage || h->conn->opened > x->decided;
        if (!h->lost && h->generation == x->generation && !x->restarts.barren)
            sim_broken(w, "%s is left out, and no new connection was tried", h->name);
    }
}

/* The slots of a machine with two names would count twice. */
static void check_twin(struct sim_world *w, const struct sim_host *h)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *other = &w->hosts[i];

        if (other != h && other->generation == w->witness.generation &&
            strcmp(other->identity, h->identity) == 0)
            sim_broken(w, "%s and %s are one machine, and both have ranks", h->name, other->name);
    }
}

/* Until the job has committed a checkpoint, ranks are told what the user has said about those of
 * other jobs. Rank 0's host looks at the directory. */
static void check_checkpoint_options(struct sim_world *w, const struct sim_conn *c,
                                     const struct dt_msg_start *m)
{
    const struct sim_restarts *r = &w->witness.restarts;
    uint8_t look = DT_CHECKPOINT_USABLE;

    if (m->fresh != (w->s->fresh && !r->committed) || m->resume != (w->s->resume && !r->committed))
        sim_broken(w, "START to %s says fresh %d, resume %d", c->host->name, m->fresh, m->resume);
    if (m->resume)
        look = DT_CHECKPOINT_READABLE;
    else if (!w->s->resume && !w->s->fresh && r->n == 0)
        look = DT_CHECKPOINT_UNUSED;
    if (!w->s->checkpoint_dir || m->ranks.v[0] != 0)
        look = 0;
    if (c->aside && r->newest >= 0)
        look = DT_CHECKPOINT_THERE;
    if (m->check_checkpoint_dir != look)
        sim_broken(w, "START to %s asks for look %d, not %d, at the checkpoints", c->host->name,
                   m->check_checkpoint_dir, look);
}

static void check_slots(struct sim_world *w, const struct sim_conn *c, const struct dt_msg_start *m)
{
    if (w->s->no_oversubscribe && m->ranks.n > (uint32_t)w->s->slots[c->host->index])
        sim_broken(w, "%s has %d slots, and gets %u ranks", c->host->name,
                   w->s->slots[c->host->index], m->ranks.n);
}

static void check_start(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m)
{
    struct sim_witness *x = &w->witness;

    if (m->generation != x->generation) {
        if (m->generation != x->generation + 1)
            sim_broken(w, "generation %u follows %u", m->generation, x->generation);
        check_left_out(w);
        if (x->generation > 0)
            sim_oracle_decided(w);
        sim_rejoin_started(w);
        sim_restarts_started(w);
        sim_check_quarantine_over(w);
        sim_oracle_started(w, m->generation);
        check_alone(w, m->generation, false);
    }
    if (m->restart_count != x->restarts.n)
        sim_broken(w, "START says that there were %u restarts, but there were %u", m->restart_count,
                   x->restarts.n);
    if (!c->pushed)
        sim_broken(w, "%s gets START before its files", c->host->name);
    if (c->started)
        sim_broken(w, "START of generation %u goes to %s, where %u runs", m->generation,
                   c->host->name, c->started);
    x->nodes++;
    c->host->node = m->node_rank;
    c->host->apart = false;
    c->host->fences = c->fenced = 0;
    c->ready = false;
    for (uint32_t i = 0; i < m->ranks.n; i++)
        w->known[m->ranks.v[i]] = (struct sim_known){ .host = c->host->index };
    check_twin(w, c->host);
    check_checkpoint_options(w, c, m);
    check_slots(w, c, m);
    sim_check_quarantine_kept(w, c->host);
    sim_stdin_started(w, c, m);
    sim_check_injections(w, c, m);
    c->pausing = w->pausing;
    if (c->host->left)
        sim_broken(w, "%s gets ranks, and shuts down", c->host->name);
    if (m->generation > 1 && sim_is_about_to_end(w))
        sim_broken(w, "%s gets ranks again although a signal is about to end the job",
                   c->host->name);
    c->started = c->host->generation = m->generation;
    c->stop_grace = UINT32_MAX;
}

/* Ranks that wait for GO would get it only then. */
static void check_interrupt(struct sim_world *w)
{
    if (w->witness.running != w->witness.nodes)
        sim_broken(w, "ranks are sent SIGINT, and not all of them run");
    sim_oracle_decided(w);
}

/* All ranks run, or none does. */
static void check_go(struct sim_world *w, struct sim_conn *c, const struct dt_msg_go *m)
{
    const struct sim_witness *x = &w->witness;

    if (c->reads && c->stdin_ended != w->input.ended)
        sim_broken(w, "%s is not told that standard input has ended", c->host->name);
    if (m->generation != x->generation)
        sim_broken(w, "GO of generation %u in %u", m->generation, x->generation);
    if (x->ncauses || x->decided)
        sim_broken(w, "%s is sent GO, and the generation has failed", c->host->name);
    if (x->went != m->generation) { /* once for the generation, not for each host */
        if (x->ready != x->nodes)
            sim_broken(w, "ranks are to run, and %u of %u hosts are ready", x->ready, x->nodes);
        check_alone(w, m->generation, true);
    }
    w->witness.went = c->went = m->generation;
}

/* "A launcher sends no PING to an agent that has sent nothing since the PING before", unless the
 * launcher itself has stood still. */
static void check_ping(struct sim_world *w, struct sim_conn *c)
{
    if (c->heard_ns < c->pinged_ns && w->standing_until <= c->heard_ns)
        sim_broken(w, "%s is sent PING, and has not answered the last one", c->host->name);
    c->pinged_ns = w->now_ns;
}

void sim_check_sent(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m)
{
    c->sent_ns = w->now_ns;
    switch (type) {
    case DT_MSG_START:
        check_start(w, c, &m->start);
        break;
    case DT_MSG_STOP:
        sim_check_stop(w, c, &m->stop);
        break;
    case DT_MSG_SIGNAL:
        if (m->signal.signo == SIGINT)
            check_interrupt(w);
        w->pausing |= m->signal.signo == SIGSTOP;
        sim_check_signal(w, c, m->signal.signo);
        break;
    case DT_MSG_ABORT:
        if (m->abort.generation != w->witness.generation || !c->started)
            sim_broken(w, "ABORT of generation %u goes to %s, where none of its ranks runs",
                       m->abort.generation, c->host->name);
        if (!sim_check_passed_on(w, c, &m->abort))
            sim_check_abort(w, &m->abort);
        break;
    case DT_MSG_FENCED:
        sim_check_fenced(w, c, &m->fenced);
        break;
    case DT_MSG_STDIN:
        sim_check_stdin(w, c, &m->stdin);
        break;
    case DT_MSG_STDIN_EOF:
        sim_check_stdin_eof(w, c);
        break;
    case DT_MSG_PROBE:
        sim_check_probe(w, c, &m->probe);
        break;
    case DT_MSG_GO:
        check_go(w, c, &m->go);
        break;
    case DT_MSG_PING:
        check_ping(w, c);
        break;
    case DT_MSG_QUERY:
        sim_check_query(w, c, &m->query);
        break;
    default:
        break;
    }
}

/* ---- what dtrun receives ---- */

static void check_commit(struct sim_world *w, const struct dt_msg_commit *m)
{
    struct sim_restarts *r = &w->witness.restarts;

    w->witness.said_behind = r->behind = false;
    if (m->generation != w->witness.generation)
        return;
    r->restoring |= m->kind == DT_RESTORE_BEGUN;
    if (m->kind == DT_RESTORE_BEGUN)
        return;
    sim_recovery_told(w, m);
    if (m->kind == DT_COMMITTED && m->step < r->newest && w->s->restores)
        sim_broken(w, "step %" PRId64 " is committed after %" PRId64, m->step, r->newest);
    r->saved = true;
    r->committed |= m->kind == DT_COMMITTED;
    r->behind = m->kind == DT_RESTORED && m->step < r->newest;
    r->newest = m->step;
}

static void check_behind(struct sim_world *w)
{
    if (w->witness.said_behind != w->witness.restarts.behind)
        sim_broken(w, "dtrun %s that the ranks do not find the newest checkpoint",
                   w->witness.said_behind ? "says" : "does not say");
}

static void check_done(struct sim_world *w, struct sim_conn *c, uint32_t generation)
{
    if (generation != c->started || generation != w->witness.generation)
        return;
    c->started = 0;
    sim_check_streams_whole(w, c->agent);
}

static void check_refusal(struct sim_world *w, struct sim_conn *c,
                          const struct dt_msg_spawn_failed *m)
{
    int code = m->error == ENOENT ? DT_EXIT_NOT_FOUND : DT_EXIT_NOT_EXECUTABLE;
    bool dispensable;

    if (m->generation != w->witness.generation)
        return;
    c->started = 0;
    if (c->host->left)
        return;
    dispensable = m->step == DT_SPAWN_LEFTOVER ? !m->error : c->aside;
    if (!dispensable || !sim_must_leave_stuck(w, c))
        sim_oracle_refusal(w, m->step == DT_SPAWN_EXEC ? code : DT_EXIT_LAUNCH);
}

/* Those of a generation that is being ended do not count. */
static void check_hello(struct sim_world *w, const struct dt_msg_rank_hello *m)
{
    if (m->generation != w->witness.generation || w->witness.restarting || w->witness.cut_off)
        return;
    w->witness.restarts.met = true;
    w->known[m->rank].met = true;
}

static void check_ready(struct sim_world *w, struct sim_conn *c, const struct dt_msg_ready *m)
{
    if (m->generation != w->witness.generation)
        return;
    if (w->witness.ready++ == 0) /* by now all hosts were sent START that get it */
        sim_check_back_used(w);
    c->ready = true;
    c->host->orphans_ns = 0;
}

static void check_started(struct sim_world *w, struct sim_conn *c, const struct dt_msg_started *m)
{
    if (m->generation != w->witness.generation)
        return;
    w->witness.running++;
    sim_rejoin_runs(w, c);
}

void sim_check_told(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m)
{
    switch (type) {
    case DT_MSG_TRIGGERED:
        sim_check_triggered(w, m->triggered.fault);
        break;
    case DT_MSG_READY:
        check_ready(w, c, &m->ready);
        break;
    case DT_MSG_STARTED:
        check_started(w, c, &m->started);
        sim_recovery_all_run(w);
        break;
    case DT_MSG_REACH:
        sim_check_reach(w, c, &m->reach);
        break;
    case DT_MSG_COMMIT:
        check_commit(w, &m->commit);
        break;
    case DT_MSG_MPI_STATE:
        sim_oracle_mpi_state(w, &m->mpi_state);
        break;
    case DT_MSG_EXIT:
        sim_oracle_exit(w, c, &m->exit);
        break;
    case DT_MSG_ANSWER:
        sim_check_answer(w, c, &m->answer);
        break;
    case DT_MSG_FAILED:
        sim_check_failed(w, &m->failed);
        break;
    case DT_MSG_LAST_CALLS:
        sim_check_last_calls_told(w, &m->last_calls);
        break;
    case DT_MSG_OUTPUT_QUIET:
        sim_check_quiet_told(w, &m->output_quiet);
        break;
    case DT_MSG_LIMIT:
        sim_check_limit_told(w, &m->limit);
        break;
    case DT_MSG_FENCE:
        sim_check_fence_told(w, c, &m->fence);
        break;
    case DT_MSG_RANK_HELLO:
        check_hello(w, &m->rank_hello);
        break;
    case DT_MSG_SPAWN_FAILED:
        check_refusal(w, c, &m->spawn_failed);
        break;
    case DT_MSG_STDIN_CREDIT:
        if (m->stdin_credit.generation == w->witness.generation)
            c->stdin_taken += m->stdin_credit.bytes;
        break;
    case DT_MSG_SIGNALLED:
        sim_check_signalled(w, c);
        break;
    case DT_MSG_DONE:
        check_done(w, c, m->done.generation);
        break;
    default:
        break;
    }
}

void sim_check_handled(struct sim_world *w, struct sim_conn *c, uint8_t type)
{
    switch (type) {
    case DT_MSG_FAILED:
        sim_check_all_passed_on(w);
        break;
    case DT_MSG_FENCE:
        sim_check_fence_passed_on(w);
        break;
    case DT_MSG_REACH:
        sim_check_reach_handled(w);
        break;
    case DT_MSG_STARTED:
        sim_check_recovery_handled(w);
        sim_rejoin_watch(w);
        break;
    case DT_MSG_COMMIT:
        check_behind(w);
        sim_check_recovery_handled(w);
        break;
    case DT_MSG_OUTPUT_QUIET:
        sim_check_quiet_shown(w);
        break;
    case DT_MSG_LIMIT:
        sim_check_limit_handled(w);
        break;
    case DT_MSG_SIGNALLED:
        sim_check_signalled_handled(w, c);
        break;
    case DT_MSG_SPAWN_FAILED:
        sim_check_stuck_handled(w);
        break;
    case DT_MSG_DONE:
        sim_check_not_awaited(w);
        break;
    default:
        break;
    }
}

/* ---- connections that end ---- */

/* A job that ends does not wait for hosts that are still connecting, and only briefly for
 * others. */
static bool may_be_cut(const struct sim_world *w, const struct sim_conn *c)
{
    const struct sim_witness *x = &w->witness;
    bool ordered = x->norders > 0;

    if (x->finished)
        return true;
    if (!c->pushed)
        return ordered || (x->decided && sim_oracle_allows(w, false));
    return ordered && w->now_ns - x->orders[0].at_ns >= PATIENCE_NS;
}

/* Ranks are being ended, or about to be. */
static bool is_about_to_stop(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return x->ncauses || x->norders || x->restarting || x->finished;
}

void sim_check_closed(struct sim_world *w, struct sim_conn *c)
{
    uint64_t since_ns = c->greeted ? c->heard_ns : c->opened_ns;
    uint64_t silent_ns = w->now_ns - since_ns;

    if (w->witness.cut_off && !w->witness.decided && c->host->apart) {
        c->host->lost = true;
        return;
    }
    c->cut = may_be_cut(w, c);
    if (c->same || (c->aside && !c->pushed && is_about_to_stop(w)) || w->witness.stuck == c->host ||
        (w->witness.late && c->host->left))
        return;
    if (silent_ns < (uint64_t)w->s->heartbeat_s * SIM_S && !c->cut)
        sim_broken(w, "dtrun gives %s up, which was silent for %" PRIu64 " ms", c->host->name,
                   silent_ns / SIM_MS);
}

void sim_check_lost(struct sim_world *w, struct sim_conn *c)
{
    if (c->started == w->witness.generation && c->started && !w->witness.cut_off) {
        sim_oracle_lost(w, c);
        sim_check_injected_loss(w, c);
    }
    if (c->started && c->went == c->started)
        c->host->orphans_ns = c->sent_ns;
    sim_rejoin_ended(w, c);
    c->started = 0;
    w->witness.lost_early |= w->witness.generation == 0;
    w->witness.lost_ns = w->now_ns;
}

/* ---- what dtrun prints ---- */

/* A line may come again with each failure, but not each time that a job tries something again. */
static void check_repeated(struct sim_world *w, const char *line)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    struct sim_said *s = w->witness.said;

    for (const char *c = line; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    while (s->n && s->hash != hash && s + 1 < w->witness.said + SIM_SAID_MAX)
        s++;
    s->n = s->hash == hash ? s->n + 1 : 1;
    s->hash = hash;
    if (s->n > w->witness.restarts.n + SAID_MAX && strncmp(line, "dtrun: | ", 9) != 0)
        sim_broken(w, "dtrun says %u times: %s", s->n, line);
}

/* The job resumes from the step that was committed last. */
void sim_check_said(struct sim_world *w, const char *line)
{
    const char *from = strstr(line, "from the checkpoint of step ");
    long long step = -1;

    check_repeated(w, line);
    sim_check_last_calls_said(w, line);
    sim_check_quarantine_said(w, line);
    sim_check_departure_said(w, line);
    sim_check_back_said(w, line);
    sim_check_away_said(w, line);
    sim_check_late_said(w, line);
    sim_check_one_machine_said(w, line);
    sim_check_recovery_said(w, line);
    sim_check_warned(w, line);
    sim_check_output_said(w, line);
    w->witness.said_behind |= strstr(line, "although a checkpoint of step ") != NULL;
    if (strncmp(line, "dtrun: restarting ", 18) != 0)
        return;
    if (sim_is_about_to_end(w))
        sim_broken(w, "dtrun restarts ranks although a signal is about to end the job");
    sim_check_departure(w);
    sim_expect_away_said(w);
    w->witness.restarting = true;
    sim_oracle_decided(w);
    if (from)
        sscanf(from, "from the checkpoint of step %lld", &step);
    if (step != w->witness.restarts.newest)
        sim_broken(w, "dtrun resumes from step %lld, but %" PRId64 " was committed", step,
                   w->witness.restarts.newest);
    sim_recovery_planned(w, step, sim_restarts_delay_ns(w));
}

/* ---- at the end ---- */

void sim_check_end(struct sim_world *w)
{
    int code = dt_job_exit_code(w->job);
    char expected[256];

    for (const struct sim_agent *a = w->agents; a; a = a->next) {
        if (!a->conn->cut)
            sim_check_streams_ended(w, a);
        if (a->held) /* the SIGCONT that it waits for was lost with its connection */
            continue;
        if (a->alive && a->host->frozen_until <= w->now_ns && a->host->cut_until <= w->now_ns)
            sim_broken(w, "the agent of %s is left behind", a->host->name);
        else if (a->left && !sim_agent_is_fenced(w, a))
            sim_broken(w, "ranks on %s are left behind", a->host->name);
    }
    sim_check_last_calls_complete(w);
    sim_check_report(w);
    if (!w->witness.finished)
        sim_broken(w, "dtrun exits without ending the output");
    if (!sim_oracle_accepts(w, code, expected, sizeof expected))
        sim_broken(w, "dtrun exits with %d, not with %s", code, expected);
}
