/* Ending a job: signals, --timeout, a reader that left, a failure; and the last moments of every
 * job. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/watch/signals.h"
#include "launcher/watch/words.h"

enum {
    KILL_PATIENCE_MS = 2000, /* after KILL, and after END: then connections are cut */
    CUT_MS = 50,
};

static uint32_t grace_ms(const struct dt_job *j)
{
    return (uint32_t)j->core.config->kill_grace_s * 1000;
}

/* A job that was told to stop waits neither for a reader that takes nothing nor for a file system
 * that stands still. */
static void drop_output(struct dt_job *j)
{
    const char *what = j->core.ops->output_awaits(j->core.ops->arg);

    if (j->core.state != DT_JOB_ENDING || !j->core.told_to_stop || j->core.output_dropped || !what)
        return;
    dt_say("the last output was not %s for %d s and is dropped", what, KILL_PATIENCE_MS / 1000);
    dt_job_cut(j);
}

void dt_job_on_patience_over(struct dt_job *j)
{
    drop_output(j);
    dt_hostlinks_close_all(&j->core.links);
    dt_core_check(&j->core);
}

static void begin_stopping(struct dt_job *j)
{
    dt_timers_stop(&j->core.timers, DT_TIMER_COLLECT);
    j->core.ops->stdin_hold(j->core.ops->arg);
    dt_hostlinks_close_coming(&j->core.links);
}

static void end_ranks(struct dt_job *j, uint32_t ms)
{
    struct dt_msg_stop stop = { .grace_ms = ms };

    begin_stopping(j);
    dt_hostlinks_send_all(&j->core.links, DT_MSG_STOP, &stop);
    dt_core_check(&j->core);
}

void dt_job_refuse(struct dt_job *j)
{
    j->core.outcome.exit_code = j->refusal.exit_code;
    end_ranks(j, 0);
}

void dt_job_end_ranks(struct dt_job *j)
{
    end_ranks(j, grace_ms(j));
}

/* SIGINT goes to the ranks as what it is, since many programs save their state on it; the agents'
 * own ladder begins with TERM. */
static void interrupt_ranks(struct dt_job *j)
{
    struct dt_msg_signal intr = { .signo = SIGINT }, cont = { .signo = SIGCONT };

    dt_hostlinks_send_all(&j->core.links, DT_MSG_SIGNAL, &intr);
    dt_hostlinks_send_all(&j->core.links, DT_MSG_SIGNAL, &cont);
}

void dt_job_stop(struct dt_job *j)
{
    struct dt_msg_stop stop = { .grace_ms = grace_ms(j) };

    begin_stopping(j);
    j->core.told_to_stop = true;
    /* Ranks that wait at the gate would take a signal only when they go on, and need no grace. */
    if (j->stop_with_int && j->core.all_started)
        interrupt_ranks(j);
    else
        dt_hostlinks_send_all(&j->core.links, DT_MSG_STOP, &stop);
    dt_timers_set(&j->core.timers, DT_TIMER_GRACE, grace_ms(j));
    dt_core_check(&j->core);
}

void dt_job_kill(struct dt_job *j)
{
    struct dt_msg_stop stop = { .grace_ms = 0 };

    begin_stopping(j);
    j->core.told_to_stop = true;
    dt_hostlinks_send_all(&j->core.links, DT_MSG_STOP, &stop);
    dt_timers_stop(&j->core.timers, DT_TIMER_GRACE);
    dt_timers_set(&j->core.timers, DT_TIMER_PATIENCE, KILL_PATIENCE_MS);
    dt_core_check(&j->core);
}

void dt_job_abandon(struct dt_job *j)
{
    j->core.told_to_stop = true;
    dt_hostlinks_close_coming(&j->core.links);
    dt_job_finish(j);
}

static void say_end(const struct dt_job *j)
{
    double total = (double)(j->ended_ns - j->began_ns) / 1e9;
    struct dt_strbuf b = { 0 };

    if (j->core.outcome.exit_code != 0 || (j->history.nrecoveries == 0 && !j->terminal))
        return;
    dt_strbuf_puts(&b, "done in ");
    dt_words_duration(&b, total);
    if (j->history.nrecoveries > 0)
        dt_history_words(&j->history, j->core.config->hosts, j->restart.linked, total, &b);
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void check_ignored(struct dt_job *j)
{
    char *text = j->core.outcome.exit_code == 0 ? dt_failed_calls_judge(&j->failed_calls) : NULL;

    if (!text)
        return;
    dt_say("%s", text);
    dt_outcome_set_reason(&j->core.outcome, text);
    j->core.outcome.exit_code = DT_EXIT_LAUNCH;
}

void dt_job_finish(struct dt_job *j)
{
    check_ignored(j);
    if (j->history.recovering && j->core.outcome.exit_code == 0)
        dt_job_recovered(j, false, -1);
    j->ended_ns = dt_core_now(&j->core);
    j->core.ops->stdin_hold(j->core.ops->arg);
    j->core.ops->output_end(j->core.ops->arg);
    if (j->refusal.text)
        dt_outcome_set_reason(&j->core.outcome, dt_xstrdup(j->refusal.text));
    dt_refusal_say(&j->refusal);
    dt_last_calls_say(&j->last_calls);
    if (j->core.outcome.exit_code == 0)
        dt_injections_say_unstruck(&j->injections, &j->core.plan, &j->core.ranks);
    say_end(j);
    dt_hostlinks_end_all(&j->core.links);
    dt_timers_stop(&j->core.timers, DT_TIMER_GRACE);
    dt_timers_set(&j->core.timers, DT_TIMER_PATIENCE, KILL_PATIENCE_MS);
    dt_core_check(&j->core);
}

void dt_job_on_cut(struct dt_job *j)
{
    j->core.output_dropped = true;
    dt_job_on_patience_over(j);
}

/* What has just been said gets a moment to come out. */
void dt_job_cut(struct dt_job *j)
{
    dt_timers_stop(&j->core.timers, DT_TIMER_PATIENCE);
    dt_timers_set(&j->core.timers, DT_TIMER_CUT, CUT_MS);
}

void dt_job_on_timeout(struct dt_job *j)
{
    struct dt_strbuf b = { 0 };

    if (j->core.state == DT_JOB_STOPPING || j->core.state == DT_JOB_ENDING ||
        dt_auxiliaries_end(&j->auxiliaries))
        return;
    dt_ranks_words(&j->core.ranks, true, &b);
    dt_say("the time limit of %d s is over; %s%s", j->core.config->timeout_s,
           b.len ? "stopping the ranks that are still running: " : "no rank was running",
           dt_strbuf_text(&b));
    dt_strbuf_free(&b);
    dt_core_end(&j->core, DT_EV_STOP, DT_EXIT_TIMEOUT,
                dt_xasprintf("time limit of %d s", j->core.config->timeout_s));
}

/* A reader that left (head) ends the job as it would end a program in a pipe: silently, as if by
 * SIGPIPE. what: "standard output", or a file. */
void dt_job_output_failed(struct dt_job *j, const char *what, int error)
{
    bool over = j->core.state == DT_JOB_STOPPING || j->core.state == DT_JOB_ENDING;

    if (error != EPIPE)
        dt_say("%s cannot be written: %s", what, strerror(error));
    if (!over || j->core.outcome.exit_code == 0) {
        j->core.outcome.exit_code = error == EPIPE ? DT_EXIT_SIGNAL + SIGPIPE : DT_EXIT_LAUNCH;
        dt_outcome_set_reason(&j->core.outcome, dt_xasprintf("%s: %s", what, strerror(error)));
    }
    if (!over)
        dt_core_event(&j->core, DT_EV_STOP);
    else
        dt_core_check(&j->core);
}

static void stop_by(struct dt_job *j, int signo)
{
    struct dt_strbuf b = { 0 };
    uint32_t alive = dt_ranks_alive(&j->core.ranks);

    j->stopped_by = signo;
    j->stop_with_int = dt_signal_for_ranks(signo) == SIGINT;
    if (j->core.state == DT_JOB_ENDING && j->core.outcome.exit_code != 0) { /* that has been told */
        dt_core_event(&j->core, DT_EV_STOP);
        return;
    }
    dt_words_count(&b, alive, "rank");
    dt_say("%s by %s%s%s%s", signo == SIGINT ? "interrupted" : "told to end", dt_signal_name(signo),
           alive ? "; stopping " : "", alive ? dt_strbuf_text(&b) : "",
           alive && signo == SIGINT ? " (again: kill at once)" : "");
    dt_strbuf_free(&b);
    j->core.outcome.ended_by = signo;
    dt_core_end(&j->core, DT_EV_STOP, DT_EXIT_SIGNAL + signo, dt_xstrdup(dt_signal_name(signo)));
}

void dt_job_take_signal(struct dt_job *j, int signo)
{
    struct dt_msg_signal m = { .signo = signo };
    bool stopping = j->core.state == DT_JOB_STOPPING;

    switch (dt_signal_meaning(signo, stopping && !j->stopped_by ? SIGTERM : j->stopped_by)) {
    case DT_SIGNAL_FORWARD:
        dt_hostlinks_send_all(&j->core.links, DT_MSG_SIGNAL, &m);
        break;
    case DT_SIGNAL_PAUSE:
        dt_pause_begin(&j->pause);
        break;
    case DT_SIGNAL_STOP:
        stop_by(j, signo);
        break;
    case DT_SIGNAL_KILL:
        j->core.output_dropped = true;
        dt_core_event(&j->core, DT_EV_KILL);
        break;
    case DT_SIGNAL_IGNORE:
        break;
    }
}

void dt_job_look_for_steps(struct dt_job *j)
{
    if (dt_timers_runs(&j->core.timers, DT_TIMER_GATHER) &&
        !dt_hostlinks_await_signals(&j->core.links, j->gather.gathered))
        dt_signal_gather_complete(&j->gather, &j->core.timers);
}

/* h: the host that reports the signal, or NULL. */
static void gather(struct dt_job *j, struct dt_hostlink *h, int signo)
{
    if (!dt_signal_gather_add(&j->gather, &j->core.timers, signo))
        return;
    if (h)
        h->signalled |= dt_signal_bit(signo);
    dt_job_look_for_steps(j);
}

void dt_job_signal(struct dt_job *j, int signo)
{
    bool is_keyboards = signo == SIGINT || signo == SIGTSTP;

    if (j->batch && !is_keyboards) {
        gather(j, NULL, signo);
        return;
    }
    if (j->batch)
        dt_signal_gather_skip(&j->gather, &j->core.timers, signo);
    dt_job_take_signal(j, signo);
}

/* Only signals that are meant for jobs count. */
void dt_job_on_signalled(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_signalled *m)
{
    enum dt_signal_meaning meaning = dt_signal_meaning(m->signo, 0);

    if (meaning != DT_SIGNAL_STOP && meaning != DT_SIGNAL_FORWARD)
        return;
    dt_verbose("%s: the agent was sent %s", dt_core_host_name(&j->core, h->host),
               dt_signal_name(m->signo));
    gather(j, h, (int)m->signo);
}

void dt_job_on_gathered(struct dt_job *j)
{
    uint64_t signals = dt_signal_gather_over(&j->gather, &j->core.timers);

    dt_hostlinks_forget_signals(&j->core.links);
    for (int signo = 1; signo < 64; signo++) {
        if (signals & dt_signal_bit(signo))
            dt_job_take_signal(j, signo);
    }
}
