#include "launcher/job/failure.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/io/label.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/place/role.h"
#include "launcher/watch/words.h"
#include "runtime/wire/hostshm.h"

/* How long dtrun waits at most. */
enum {
    /* for answers to QUERY, which agents delay until their dying ranks are dead */
    ANSWER_MS = 10 * 1000,
    /* after the answers, for a death that explains why a rank exited early or hangs, and until
     * ranks that know of the failure have ended */
    EXPLAIN_MS = 1000,
    /* after the answers, for the rest of the culprit's standard error, which other processes may
     * hold open */
    LAST_WORDS_MS = 50,
};

const struct dt_death *dt_failure_on_exit(struct dt_failure *f, const struct dt_hostlink *h,
                                          const struct dt_msg_exit *m)
{
    char who[DT_ROLE_NAME_MAX];
    struct dt_ranks *ranks = &f->core->ranks;
    struct dt_rank *r = m->rank < ranks->nprocs ? &ranks->v[m->rank] : NULL;

    if (m->generation != f->core->generation || !r || r->ended)
        return NULL;
    r->pid = m->pid;
    dt_ranks_end(ranks, m->rank,
                 &(struct dt_death){
                     .auxiliary = m->rank >= ranks->np,
                     .rank = m->rank,
                     .code = m->code,
                     .signo = m->signo,
                     .flags = m->flags,
                     .step = m->step,
                     .time_ns = dt_heartbeat_local(&h->heartbeat, m->time_ns),
                 });
    dt_verbose("%s ended: code %d, signal %d, step %" PRId64 ", flags %#x",
               dt_role_name(who, m->rank, ranks->np), m->code, m->signo, m->step, m->flags);
    if (!r->end.auxiliary)
        dt_deaths_add(&f->deaths, &r->end);
    f->calls.ignored |= !r->end.auxiliary && m->code == 0 && (m->flags & DT_EXITED_COMM_FAILED);
    return &r->end;
}

/* Agents keep the first reason to abort that they learn of. So dtrun tells all hosts of the failed
 * call before it tells them of any death that follows from it. */
void dt_failure_on_failed(struct dt_failure *f, const struct dt_msg_failed *m)
{
    struct dt_msg_abort abort = { .generation = m->generation,
                                  .comm = m->comm,
                                  .rank = m->rank,
                                  .code = m->code,
                                  .text = m->text };

    if (m->generation != f->core->generation ||
        (f->core->state != DT_JOB_STARTING && f->core->state != DT_JOB_RUNNING))
        return;
    dt_verbose("a call failed: %s", m->text);
    dt_failed_calls_note(&f->calls, m);
    dt_hostlinks_send_all(&f->core->links, DT_MSG_ABORT, &abort);
}

static void lose_all_of(struct dt_core *c, const struct dt_u32s *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        uint32_t number = numbers->v[i];
        struct dt_rank *r = &c->ranks.v[number];

        if (!r->ended)
            dt_ranks_end(&c->ranks, number,
                         &(struct dt_death){ .rank = number, .code = -1, .step = -1 });
        r->tail_eof = true;
        /* An unfinished line is not continued: later output comes from another process. */
        c->ops->output_eof(c->ops->arg, number, STDOUT_FILENO);
        c->ops->output_eof(c->ops->arg, number, STDERR_FILENO);
    }
}

void dt_failure_lose_processes(struct dt_failure *f, const struct dt_plan_node *node)
{
    lose_all_of(f->core, &node->ranks);
    lose_all_of(f->core, &node->auxiliaries);
}

void dt_failure_lose_host(struct dt_failure *f, const struct dt_hostlink *h,
                          const struct dt_plan_node *node)
{
    const struct dt_death death = dt_death_of_host(node->ranks.v[0], h->heartbeat.heard_ns);

    dt_deaths_add(&f->deaths, &death);
}

const struct dt_death *dt_failure_cause(const struct dt_failure *f)
{
    return dt_deaths_cause(&f->deaths, f->core->ranks.linked_alive > 0);
}

/* Ranks do not know about auxiliaries. If an auxiliary is the cause, ABORT names the first rank of
 * its host as the culprit, and abort_text() names the auxiliary. */
static uint32_t culprit_of(const struct dt_failure *f, const struct dt_death *cause)
{
    return cause->auxiliary ? dt_plan_node_of(&f->core->plan, (int)cause->rank)->ranks.v[0]
                            : cause->rank;
}

static char *abort_text(const struct dt_failure *f, const struct dt_death *cause)
{
    char name[DT_ROLE_NAME_MAX];

    if (cause && cause->hung)
        return dt_xstrdup(f->hang_detect->text);
    if (cause && cause->auxiliary)
        return dt_xasprintf("%s died", dt_role_name(name, cause->rank, f->core->ranks.np));
    return dt_xstrdup("");
}

/* Returns how the culprit ended, as encoded in ABORT. */
static uint32_t ending_of(const struct dt_death *cause)
{
    return cause && !cause->hung && !cause->auxiliary
               ? dt_hostshm_ending_of(cause->code, cause->signo)
               : 0;
}

void dt_failure_collect(struct dt_failure *f)
{
    const struct dt_death *cause = dt_failure_cause(f);
    bool hung = cause && cause->hung;
    char *text = abort_text(f, cause);
    struct dt_msg_abort abort = { .generation = f->core->generation,
                                  .rank = cause ? culprit_of(f, cause) : 0,
                                  .code = hung ? DT_HOSTSHM_TIMED_OUT : DT_HOSTSHM_PEER_DIED,
                                  .text = text,
                                  .ending = ending_of(cause) };

    f->noticed_ns = dt_core_now(f->core);
    f->explain_until_ns = 0;
    dt_hostlinks_send_all(&f->core->links, DT_MSG_ABORT, &abort);
    free(text);
    dt_core_query(f->core);
    dt_timers_set(&f->core->timers, DT_TIMER_COLLECT, ANSWER_MS);
}

/* If a rank exited with 0, or ended because it lost a peer, another death may still prove to be the
 * cause. An auxiliary that died may prove to be no longer needed. */
static bool is_certain(const struct dt_failure *f, const struct dt_death *cause)
{
    if (cause->auxiliary)
        return false;
    if (cause->hung)
        /* the ranks that waited for it report their errors and end */
        return dt_ranks_alive(&f->core->ranks) <= 1;
    if (cause->says_peer_lost)
        return dt_ranks_alive(&f->core->ranks) == 0;
    return cause->host || cause->missed ||
           (!(cause->flags & DT_EXITED_PEER_LOST) && dt_exit_of_rank(cause->code, cause->signo));
}

static void wait_at_most(struct dt_failure *f, uint64_t ms)
{
    dt_timers_shorten(&f->core->timers, DT_TIMER_COLLECT, ms);
}

static enum dt_restart_verdict verdict_on(const struct dt_failure *f, const struct dt_death *cause)
{
    bool exited = cause && !cause->host && !cause->hung && cause->signo == 0;

    return dt_restart_verdict(f->restart, exited);
}

/* Returns whether some ranks know of the failure and have yet to end. If all ranks are restarted
 * anyway, dtrun does not wait for these. */
static bool must_await_leaving_ranks(const struct dt_failure *f)
{
    const struct dt_death *cause = dt_failure_cause(f);

    if (verdict_on(f, cause) == DT_RESTART_YES && !dt_exit_is_preemption(cause))
        return false;
    for (uint32_t r = 0; r < f->core->ranks.np; r++) {
        if (f->core->ranks.v[r].leaving && !f->core->ranks.v[r].ended)
            return true;
    }
    return false;
}

static bool has_said_all(const struct dt_failure *f, const struct dt_death *cause)
{
    return cause->host || f->core->ranks.v[cause->rank].tail_eof;
}

/* Ranks without libdtrun lose peers, too, and tell only their output. Such a rank may end earlier
 * than the one that left it: PyTorch's programs close their connections before they exit. */
static bool may_be_consequence(const struct dt_death *d)
{
    return !d->host && !d->hung && !d->auxiliary && !d->missed && !d->says_peer_lost &&
           !(d->flags & DT_EXITED_PEER_LOST) && !dt_exit_is_preemption(d) &&
           (d->code > 0 || d->signo == SIGABRT);
}

static bool some_line(struct dt_tail *tail, bool (*says)(const char *line))
{
    const char *line;

    for (unsigned i = 0; (line = dt_tail_line(tail, i)); i++) {
        if (says(line))
            return true;
    }
    return false;
}

static bool says_peer_lost(struct dt_tail *tail)
{
    return some_line(tail, dt_cause_line_says_peer_lost) ||
           some_line(tail, dt_cause_line_says_timed_out);
}

/* Returns whether dtrun now waits for a death that explains the cause so far, because the last
 * lines of that rank say that it is a consequence. */
static bool awaits_explanation(struct dt_failure *f)
{
    const struct dt_death *cause;
    uint64_t now_ns = dt_core_now(f->core);

    while ((cause = dt_failure_cause(f)) && may_be_consequence(cause) &&
           says_peer_lost(&f->core->ranks.v[cause->rank].tail))
        dt_deaths_say_peer_lost(&f->deaths, cause->rank);
    if (!cause || !cause->says_peer_lost || is_certain(f, cause))
        return false;
    if (f->explain_until_ns == 0)
        f->explain_until_ns = now_ns + EXPLAIN_MS * UINT64_C(1000000);
    if (now_ns >= f->explain_until_ns)
        return false;
    dt_timers_set(&f->core->timers, DT_TIMER_COLLECT,
                  (f->explain_until_ns - now_ns + 999999) / 1000000);
    return true;
}

void dt_failure_settle(struct dt_failure *f)
{
    const struct dt_death *cause = dt_failure_cause(f);

    if (f->core->state != DT_JOB_FAILING || !dt_hostlinks_have_answered(&f->core->links))
        return;
    if (!cause || !is_certain(f, cause) || must_await_leaving_ranks(f))
        wait_at_most(f, EXPLAIN_MS);
    else if (has_said_all(f, cause))
        dt_core_event(f->core, DT_EV_SETTLED);
    else
        wait_at_most(f, LAST_WORDS_MS);
}

static void describe_host(struct dt_failure *f, const struct dt_plan_node *node,
                          struct dt_strbuf *out)
{
    dt_hostlink_describe_loss(f->core->links.v[node->host], dt_core_host_name(f->core, node->host),
                              out);
    dt_strbuf_puts(out, "; its ");
    dt_words_ranks(out, &node->ranks);
    dt_strbuf_puts(out, node->ranks.n == 1 ? " is taken as lost" : " are taken as lost");
}

static void describe(struct dt_failure *f, const struct dt_death *cause, struct dt_strbuf *out)
{
    const struct dt_plan_node *node = dt_plan_node_of(&f->core->plan, (int)cause->rank);

    if (cause->hung)
        dt_strbuf_puts(out, f->hang_detect->text);
    else if (cause->host)
        describe_host(f, node, out);
    else
        dt_words_death(out, cause, f->core->ranks.np, dt_core_host_name(f->core, node->host),
                       f->core->ranks.v[cause->rank].pid);
}

/* Says where to look for the reason, because no other death explains this one. */
static void say_consequence(const struct dt_failure *f, const struct dt_death *cause)
{
    const struct dt_death *done = dt_deaths_first_done(&f->deaths);
    bool closed = some_line(&f->core->ranks.v[cause->rank].tail, dt_cause_line_says_peer_lost);
    struct dt_strbuf b = { 0 };

    dt_strbuf_printf(&b, "hint: rank %u says that %s; ", cause->rank,
                     closed ? "another rank closed its connection"
                            : "it waited too long for another rank");
    if (done && done->time_ns < cause->time_ns) {
        dt_strbuf_printf(&b, "before that, rank %u had exited with code 0", done->rank);
    } else if (dt_ranks_alive(&f->core->ranks) > 0) {
        dt_strbuf_puts(&b, "see the output of those that still run: ");
        dt_ranks_words(&f->core->ranks, true, &b);
    } else {
        dt_strbuf_puts(&b, "see what the others printed");
    }
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* Repeats the last lines of the failed process, unless it is the job's only one and the user has
 * just seen them. Adds a hint if they show that CUDA refused LOCAL_RANK as a device. */
static void say_last_words(struct dt_failure *f, const struct dt_death *cause)
{
    bool invalid_device = false;
    char label[DT_LABEL_MAX];
    const char *line;

    if (cause->host)
        return;
    dt_label(label, cause->rank, f->core->ranks.np, false);
    for (unsigned i = 0; (line = dt_tail_line(&f->core->ranks.v[cause->rank].tail, i)); i++) {
        invalid_device |= strstr(line, "invalid device ordinal") != NULL;
        if (f->core->ranks.nprocs > 1 || f->core->config->output_hidden)
            dt_say("| %s%s", label, line);
    }
    if (invalid_device && f->core->config->gpu_bind == DT_GPU_BIND_RANK)
        dt_say(
            "hint: each rank sees one GPU, which is its device 0; if the program chooses the "
            "device by LOCAL_RANK, use --virtual-local-rank (LOCAL_RANK is 0) or --gpu-bind host "
            "(a rank sees all GPUs of its host)");
    if (cause->says_peer_lost)
        say_consequence(f, cause);
}

static void add_stopping(struct dt_failure *f, const struct dt_death *cause, struct dt_strbuf *out)
{
    uint32_t alive = dt_ranks_alive(&f->core->ranks);
    uint32_t others =
        alive && cause->hung && !f->core->ranks.v[cause->rank].ended ? alive - 1 : alive;
    const char *which = cause->auxiliary ? "" : "other ";

    if (others == 1)
        dt_strbuf_printf(out, "; stopping the %srank", which);
    else if (others > 1)
        dt_strbuf_printf(out, "; stopping the %s%u ranks", which, others);
}

static void say_giving_up(const struct dt_failure *f, const struct dt_death *cause,
                          enum dt_restart_verdict verdict)
{
    struct dt_strbuf b = { 0 };
    char who[DT_ROLE_NAME_MAX];

    dt_words_count(&b, f->restart->restarts, "restart");
    if (verdict == DT_RESTART_LIMIT && f->restart->restarts > 0)
        dt_say("giving up after %s (--max-restarts %d)", dt_strbuf_text(&b),
               f->restart->max_restarts);
    else if (verdict == DT_RESTART_NO_PROGRESS && !cause->host &&
             f->repeats > DT_RESTARTS_WITHOUT_PROGRESS)
        dt_say("giving up: %d restarts without progress (no newer checkpoint), and each "
               "time %s failed in the same way",
               DT_RESTARTS_WITHOUT_PROGRESS, dt_role_name(who, cause->rank, f->core->ranks.np));
    else if (verdict == DT_RESTART_NO_PROGRESS)
        dt_say("giving up: %d restarts without progress (no newer checkpoint)",
               DT_RESTARTS_WITHOUT_PROGRESS);
    dt_strbuf_free(&b);
}

static void count_repeats(struct dt_failure *f, const struct dt_death *cause)
{
    const struct dt_death *last = &f->last_cause;
    bool same = f->repeats > 0 && cause->host == last->host && cause->hung == last->hung &&
                cause->rank == last->rank && cause->code == last->code &&
                cause->signo == last->signo;

    f->repeats = same ? f->repeats + 1 : 1;
    f->last_cause = *cause;
}

/* Preemption is not a failure. dtrun does not restart the job: the scheduler that preempted it
 * decides when it runs again. */
static void end_preempted(struct dt_failure *f, const struct dt_death *cause)
{
    struct dt_strbuf b = { 0 };
    char *reason;

    dt_strbuf_puts(&b, "preempted: ");
    describe(f, cause, &b);
    reason = dt_xstrdup(dt_strbuf_text(&b));
    add_stopping(f, cause, &b);
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
    dt_core_end(f->core, DT_EV_FAILED, DT_EXIT_PREEMPTED, reason);
}

static void end_with(struct dt_failure *f, const struct dt_death *cause, const char *text,
                     enum dt_restart_verdict verdict)
{
    struct dt_strbuf line = { 0 };

    dt_strbuf_puts(&line, text);
    add_stopping(f, cause, &line);
    dt_say("%s", dt_strbuf_text(&line));
    say_last_words(f, cause);
    say_giving_up(f, cause, verdict);
    dt_strbuf_free(&line);
    f->core->outcome.cause = *cause;
    f->core->outcome.has_cause = true;
    dt_core_end(f->core, DT_EV_FAILED, dt_exit_of_cause(cause), dt_xstrdup(text));
}

bool dt_failure_decide(struct dt_failure *f, struct dt_death *cause, struct dt_strbuf *text)
{
    enum dt_restart_verdict verdict;

    dt_timers_stop(&f->core->timers, DT_TIMER_COLLECT);
    if (awaits_explanation(f))
        return false;
    if (!dt_failure_cause(f)) {
        dt_core_event(f->core, f->core->all_started ? DT_EV_HARMLESS : DT_EV_HARMLESS_EARLY);
        return false;
    }
    *cause = *dt_failure_cause(f);
    verdict = verdict_on(f, cause);
    if (dt_exit_is_preemption(cause)) {
        end_preempted(f, cause);
        return false;
    }
    if (dt_signals_may_explain(f->signals, cause->signo, f->noticed_ns))
        return false;
    count_repeats(f, cause);
    describe(f, cause, text);
    if (verdict != DT_RESTART_YES) {
        end_with(f, cause, dt_strbuf_text(text), verdict);
        return false;
    }
    dt_say("%s", dt_strbuf_text(text));
    say_last_words(f, cause);
    return true;
}

void dt_failure_forget(struct dt_failure *f)
{
    dt_deaths_forget(&f->deaths);
    dt_failed_calls_forget(&f->calls);
}

void dt_failure_init(struct dt_failure *f, struct dt_core *core,
                     const struct dt_hang_detect *hang_detect, const struct dt_signals *signals,
                     const struct dt_restart *restart)
{
    *f = (struct dt_failure){
        .core = core, .hang_detect = hang_detect, .signals = signals, .restart = restart
    };
    /* Each process and each host is added at most once, with two exceptions: a rank that hangs may
     * be added again when it dies, and a rank that exited with 0 is added again if others wait for
     * it in an MPI call. */
    dt_deaths_init(&f->deaths, core->ranks.nprocs + core->config->hosts->n + 2);
}

void dt_failure_free(struct dt_failure *f)
{
    dt_deaths_free(&f->deaths);
    dt_failed_calls_forget(&f->calls);
}
