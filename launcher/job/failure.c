/* Deaths: recording them, finding out which was the first, and what follows from it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/io/label.h"
#include "launcher/job/engine.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/watch/words.h"
#include "runtime/wire/hostshm.h"

enum {
    ANSWER_MS = 10 * 1000, /* what agents get for their answers: they wait for what is dying */
    GIVE_UP_MS = 1000,     /* then: for ranks to follow the one that only left, or hangs; or, who
                            * heard of a death, to say what they have to, and end */
    LAST_WORDS_MS = 50,    /* then: for the rest of the culprit's standard error, which others may
                            * have open for as long as they like */
};

static void add_rank_death(struct dt_job *j, const struct dt_rank *r, const struct dt_msg_exit *m)
{
    dt_deaths_add(&j->deaths, &r->end);
    dt_restart_reached(&j->recovery.restart, m->step, true);
    if (m->code != 0)
        return;
    j->core.ranks.ended_well += !(m->flags & DT_EXITED_PEER_LOST);
    j->failed_calls.ignored |= (m->flags & DT_EXITED_COMM_FAILED) != 0;
    dt_stragglers_watch(&j->stragglers);
    dt_auxiliaries_watch(&j->auxiliaries);
}

void dt_job_on_exit(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_exit *m)
{
    char who[DT_ROLE_NAME_MAX];
    struct dt_rank *r = m->rank < j->core.ranks.nprocs ? &j->core.ranks.v[m->rank] : NULL;

    if (m->generation != j->core.generation || !r || r->ended)
        return;
    r->pid = m->pid;
    dt_ranks_end(&j->core.ranks, m->rank,
                 &(struct dt_death){
                     .auxiliary = m->rank >= j->core.ranks.np,
                     .rank = m->rank,
                     .code = m->code,
                     .signo = m->signo,
                     .flags = m->flags,
                     .step = m->step,
                     .time_ns = dt_heartbeat_local(&h->heartbeat, m->time_ns),
                 });
    dt_verbose("%s ended: code %d, signal %d, step %" PRId64 ", flags %#x",
               dt_role_name(who, m->rank, j->core.ranks.np), m->code, m->signo, m->step, m->flags);
    if (j->core.state == DT_JOB_STOPPING && j->core.outcome.ended_by &&
        dt_exit_is_preemption(&r->end))
        j->core.outcome.exit_code = DT_EXIT_PREEMPTED;
    if (r->end.auxiliary)
        dt_auxiliaries_on_exit(&j->auxiliaries, &r->end);
    else
        add_rank_death(j, r, m);
    if (dt_job_cause(j))
        dt_core_event(&j->core, DT_EV_RANK_FAILED);
    dt_job_settle(j);
}

/* The reason goes to all hosts before any death that follows from it: agents heed the first. */
void dt_job_on_failed(struct dt_job *j, const struct dt_msg_failed *m)
{
    struct dt_msg_abort abort = { m->generation, m->comm, m->rank, m->code, m->text, 0 };

    if (m->generation != j->core.generation ||
        (j->core.state != DT_JOB_STARTING && j->core.state != DT_JOB_RUNNING))
        return;
    dt_verbose("a call failed: %s", m->text);
    dt_failed_calls_note(&j->failed_calls, m);
    dt_hostlinks_send_all(&j->core.links, DT_MSG_ABORT, &abort);
}

static void lose(struct dt_job *j, const struct dt_u32s *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        uint32_t number = numbers->v[i];
        struct dt_rank *r = &j->core.ranks.v[number];

        if (!r->ended)
            dt_ranks_end(&j->core.ranks, number,
                         &(struct dt_death){ .rank = number, .code = -1, .step = -1 });
        r->tail_eof = true;
        /* Nothing will complete a line that was begun; what comes next is of another process. */
        j->core.ops->output_eof(j->core.ops->arg, number, STDOUT_FILENO);
        j->core.ops->output_eof(j->core.ops->arg, number, STDERR_FILENO);
    }
}

static void note_injected_loss(struct dt_job *j, struct dt_hostlink *h,
                               const struct dt_plan_node *node)
{
    enum dt_injected_loss loss = dt_injections_lose_host(&j->injections, node);

    h->injected = loss != DT_LOSS_NOT_INJECTED;
    if (loss == DT_LOSS_OF_HOST)
        dt_rehost_lose(&j->recovery.rehost, h->host);
}

static void lose_host(struct dt_job *j, struct dt_hostlink *h, bool had_ranks)
{
    const struct dt_plan_node *node = dt_plan_node_on(&j->core.plan, h->host);

    if (!node)
        return;
    lose(j, &node->ranks);
    lose(j, &node->auxiliaries);
    if (had_ranks)
        note_injected_loss(j, h, node);
    if ((j->core.state == DT_JOB_STARTING || j->core.state == DT_JOB_RUNNING ||
         j->core.state == DT_JOB_FAILING) &&
        !dt_auxiliaries_pardon_host(&j->auxiliaries, h))
        dt_deaths_add(&j->deaths, &(struct dt_death){
                                      .host = true,
                                      .rank = node->ranks.v[0],
                                      .code = -1,
                                      .step = -1,
                                      .time_ns = h->heartbeat.heard_ns,
                                  });
    dt_core_event(&j->core, DT_EV_HOST_LOST);
    dt_job_settle(j);
}

void dt_job_link_ended(struct dt_job *j, struct dt_hostlink *h, enum dt_host_phase was)
{
    bool had_ranks = was == DT_HOST_STARTING || was == DT_HOST_RUNNING;

    dt_signals_check_steps(&j->signals);
    if (j->core.state == DT_JOB_CONNECTING)
        dt_say("%s: %s", dt_core_host_name(&j->core, h->host),
               h->why.text[0] ? h->why.text : "agent: it ended unexpectedly");
    else if (had_ranks || (j->core.state == DT_JOB_RECOVERING && was == DT_HOST_IDLE))
        lose_host(j, h, had_ranks);
}

/* Ranks know only ranks: an auxiliary is told of by name, and the first of its host stands for it.
 */
static uint32_t culprit_of(const struct dt_job *j, const struct dt_death *cause)
{
    return cause->auxiliary ? dt_plan_node_of(&j->core.plan, (int)cause->rank)->ranks.v[0]
                            : cause->rank;
}

static char *abort_text(const struct dt_job *j, const struct dt_death *cause)
{
    char name[DT_ROLE_NAME_MAX];

    if (cause && cause->hung)
        return dt_xstrdup(j->hangs.text);
    if (cause && cause->auxiliary)
        return dt_xasprintf("%s died", dt_role_name(name, cause->rank, j->core.ranks.np));
    return dt_xstrdup("");
}

/* As ranks are told. */
static uint32_t ending_of(const struct dt_death *cause)
{
    return cause && !cause->hung && !cause->auxiliary
               ? dt_hostshm_ending_of(cause->code, cause->signo)
               : 0;
}

void dt_job_collect(struct dt_job *j)
{
    const struct dt_death *cause = dt_job_cause(j);
    bool hung = cause && cause->hung;
    char *text = abort_text(j, cause);
    struct dt_msg_abort abort = { j->core.generation,
                                  0,
                                  cause ? culprit_of(j, cause) : 0,
                                  hung ? DT_HOSTSHM_TIMED_OUT : DT_HOSTSHM_PEER_DIED,
                                  text,
                                  ending_of(cause) };

    j->failed_ns = dt_core_now(&j->core);
    dt_hostlinks_send_all(&j->core.links, DT_MSG_ABORT, &abort);
    free(text);
    dt_core_ask(&j->core);
    dt_timers_set(&j->core.timers, DT_TIMER_COLLECT, ANSWER_MS);
}

/* A rank that only left, or was drawn along, may still turn out to follow from another's death, and
 * an auxiliary to be needed no more. */
static bool is_certain(const struct dt_job *j, const struct dt_death *cause)
{
    if (cause->auxiliary)
        return false;
    if (cause->hung)
        return dt_ranks_alive(&j->core.ranks) <=
               1; /* those who waited may say so before they are ended */
    return cause->host ||
           (!(cause->flags & DT_EXITED_PEER_LOST) && dt_exit_of_rank(cause->code, cause->signo));
}

/* What is waited for comes within so long, or will not. */
static void wait_at_most(struct dt_job *j, uint64_t ms)
{
    dt_timers_hasten(&j->core.timers, DT_TIMER_COLLECT, ms);
}

/* Where they are started again at once, nobody waits for them. */
static bool wait_for_leaving(const struct dt_job *j)
{
    if (dt_restart_verdict(&j->recovery.restart) == DT_RESTART_YES)
        return false;
    for (uint32_t r = 0; r < j->core.ranks.np; r++) {
        if (j->core.ranks.v[r].leaving && !j->core.ranks.v[r].ended)
            return true;
    }
    return false;
}

static bool has_said_all(const struct dt_job *j, const struct dt_death *cause)
{
    return cause->host || j->core.ranks.v[cause->rank].tail_eof;
}

void dt_job_settle(struct dt_job *j)
{
    const struct dt_death *cause = dt_job_cause(j);

    if (j->core.state != DT_JOB_FAILING || !dt_hostlinks_have_answered(&j->core.links))
        return;
    if (!cause || !is_certain(j, cause) || wait_for_leaving(j))
        wait_at_most(j, GIVE_UP_MS);
    else if (has_said_all(j, cause))
        dt_core_event(&j->core, DT_EV_SETTLED);
    else
        wait_at_most(j, LAST_WORDS_MS);
}

static void describe_host(struct dt_job *j, const struct dt_plan_node *node, struct dt_strbuf *out)
{
    dt_hostlink_describe_loss(j->core.links.v[node->host], dt_core_host_name(&j->core, node->host),
                              out);
    dt_strbuf_puts(out, "; its ");
    dt_words_ranks(out, &node->ranks);
    dt_strbuf_puts(out, node->ranks.n == 1 ? " is taken as lost" : " are taken as lost");
}

static void describe(struct dt_job *j, const struct dt_death *cause, struct dt_strbuf *out)
{
    const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, (int)cause->rank);

    if (cause->hung)
        dt_strbuf_puts(out, j->hangs.text);
    else if (cause->host)
        describe_host(j, node, out);
    else
        dt_words_death(out, cause, j->core.ranks.np, dt_core_host_name(&j->core, node->host),
                       j->core.ranks.v[cause->rank].pid);
}

/* With one process all it wrote stands right above. */
static void say_last_words(struct dt_job *j, const struct dt_death *cause)
{
    bool invalid_device = false;
    char label[DT_LABEL_MAX];
    const char *line;

    if (cause->host)
        return;
    dt_label(label, cause->rank, j->core.ranks.np, false);
    for (unsigned i = 0; (line = dt_tail_line(&j->core.ranks.v[cause->rank].tail, i)); i++) {
        invalid_device |= strstr(line, "invalid device ordinal") != NULL;
        if (j->core.ranks.nprocs > 1)
            dt_say("| %s%s", label, line);
    }
    if (invalid_device && j->core.config->gpu_bind == DT_GPU_BIND_RANK)
        dt_say("hint: each rank sees one GPU, which is its device 0; for programs that choose the "
               "device by LOCAL_RANK there are --virtual-local-rank (LOCAL_RANK is 0) and "
               "--gpu-bind host (a rank sees all GPUs of its host)");
}

static void add_stopping(struct dt_job *j, const struct dt_death *cause, struct dt_strbuf *out)
{
    uint32_t alive = dt_ranks_alive(&j->core.ranks);
    uint32_t others =
        alive && cause->hung && !j->core.ranks.v[cause->rank].ended ? alive - 1 : alive;
    const char *which = cause->auxiliary ? "" : "other ";

    if (others == 1)
        dt_strbuf_printf(out, "; stopping the %srank", which);
    else if (others > 1)
        dt_strbuf_printf(out, "; stopping the %s%u ranks", which, others);
}

static void say_giving_up(const struct dt_job *j, const struct dt_death *cause,
                          enum dt_restart_verdict verdict)
{
    struct dt_strbuf b = { 0 };
    char who[DT_ROLE_NAME_MAX];

    dt_words_count(&b, j->recovery.restart.restarts, "restart");
    if (verdict == DT_RESTART_LIMIT && j->recovery.restart.restarts > 0)
        dt_say("giving up after %s (--max-restarts %d)", dt_strbuf_text(&b),
               j->recovery.restart.max_restarts);
    else if (verdict == DT_RESTART_NO_PROGRESS && !cause->host &&
             j->alike > DT_RESTARTS_WITHOUT_PROGRESS)
        dt_say("giving up: %d restarts without progress (no newer checkpoint), each time %s "
               "failed in this way",
               DT_RESTARTS_WITHOUT_PROGRESS, dt_role_name(who, cause->rank, j->core.ranks.np));
    else if (verdict == DT_RESTART_NO_PROGRESS)
        dt_say("giving up: %d restarts without progress (no newer checkpoint)",
               DT_RESTARTS_WITHOUT_PROGRESS);
    dt_strbuf_free(&b);
}

static void count_alike(struct dt_job *j, const struct dt_death *cause)
{
    const struct dt_death *last = &j->last_cause;
    bool alike = j->alike > 0 && cause->host == last->host && cause->hung == last->hung &&
                 cause->rank == last->rank && cause->code == last->code &&
                 cause->signo == last->signo;

    j->alike = alike ? j->alike + 1 : 1;
    j->last_cause = *cause;
}

/* No failure, and nothing to start again here: whoever preempted the job decides when. */
static void end_preempted(struct dt_job *j, const struct dt_death *cause)
{
    struct dt_strbuf b = { 0 };
    char *reason;

    dt_strbuf_printf(&b, "preempted: rank %u exited with %d", cause->rank, DT_EXIT_PREEMPTED);
    reason = dt_xstrdup(dt_strbuf_text(&b));
    add_stopping(j, cause, &b);
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
    dt_core_end(&j->core, DT_EV_FAILED, DT_EXIT_PREEMPTED, reason);
}

static void end_with(struct dt_job *j, const struct dt_death *cause, const char *text,
                     enum dt_restart_verdict verdict)
{
    struct dt_strbuf line = { 0 };

    dt_strbuf_puts(&line, text);
    add_stopping(j, cause, &line);
    dt_say("%s", dt_strbuf_text(&line));
    say_last_words(j, cause);
    say_giving_up(j, cause, verdict);
    dt_strbuf_free(&line);
    j->core.outcome.cause = *cause;
    j->core.outcome.has_cause = true;
    dt_core_end(&j->core, DT_EV_FAILED, dt_exit_of_cause(cause), dt_xstrdup(text));
}

void dt_job_decide(struct dt_job *j)
{
    const struct dt_death *cause = dt_job_cause(j);
    enum dt_restart_verdict verdict = dt_restart_verdict(&j->recovery.restart);
    struct dt_strbuf text = { 0 };
    struct dt_death death;

    dt_timers_stop(&j->core.timers, DT_TIMER_COLLECT);
    if (!cause) {
        dt_core_event(&j->core, j->core.all_started ? DT_EV_HARMLESS : DT_EV_HARMLESS_EARLY);
        return;
    }
    death = *cause;
    if (dt_exit_is_preemption(&death)) {
        end_preempted(j, &death);
        return;
    }
    if (dt_signals_may_explain(&j->signals, death.signo, j->failed_ns))
        return;
    count_alike(j, &death);
    describe(j, &death, &text);
    if (verdict != DT_RESTART_YES) {
        end_with(j, &death, dt_strbuf_text(&text), verdict);
    } else {
        dt_say("%s", dt_strbuf_text(&text));
        say_last_words(j, &death);
        dt_last_calls_forget(&j->last_calls);
        dt_recovery_plan(&j->recovery, &death, dt_strbuf_text(&text), j->failed_ns);
        dt_core_event(&j->core, DT_EV_RESTART);
    }
    dt_strbuf_free(&text);
}
