#include "launcher/job/stopping.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/rank_io.h"
#include "launcher/watch/signal_meaning.h"
#include "launcher/watch/words.h"

enum {
    KILL_PATIENCE_MS = 2000, /* after KILL, and after END: then connections are closed */
    READER_MS = 2000,        /* for a reader that reads nothing, once the job was told to stop */
    AGAIN_MS = 100,          /* to look again what the job waits for */
    CUT_MS = 500,            /* leaves time to write the messages that dtrun has just printed */
};

static uint32_t grace_ms(const struct dt_core *c)
{
    return (uint32_t)c->config->kill_grace_s * 1000;
}

static void say_dropped(unsigned streams, const char *what)
{
    dt_say("the last output%s was not %s within %d s and is dropped",
           streams == DT_CORE_STREAMS                 ? ""
           : streams == dt_core_stream(STDOUT_FILENO) ? " on standard output"
                                                      : " on standard error",
           what, READER_MS / 1000);
}

static void drop_last_output(struct dt_core *c, unsigned streams, const char *what)
{
    say_dropped(streams, what);
    if (c->outcome.exit_code == 0)
        dt_core_end(c, DT_EV_STOP, DT_EXIT_TIMEOUT,
                    dt_xasprintf("output was not %s in time", what));
    else
        dt_stopping_cut(c);
}

/* A rank that waits for a reader cannot save its state, and its agent reports its end only after
 * its output. */
static void drop_output_of_ranks(struct dt_core *c, unsigned streams, const char *what)
{
    say_dropped(streams, what);
    dt_rank_io_drop(c, streams);
    if (!dt_timers_is_running(&c->timers, DT_TIMER_GRACE))
        dt_timers_set(&c->timers, DT_TIMER_PATIENCE, KILL_PATIENCE_MS);
}

static void check_reader(struct dt_core *c)
{
    const char *what;
    unsigned late = dt_core_late_streams(c, ~c->dropped, READER_MS, &what);

    if (late)
        drop_output_of_ranks(c, late, what);
    if (c->dropped != DT_CORE_STREAMS)
        dt_timers_set(&c->timers, DT_TIMER_READER, AGAIN_MS);
}

/* Once the output of ranks was dropped, only dtrun's own messages are left. */
void dt_stopping_on_reader_late(struct dt_core *c)
{
    if (c->state == DT_JOB_STOPPING) {
        check_reader(c);
    } else if (c->state == DT_JOB_ENDING) {
        c->left |= c->dropped;
        dt_core_check_idle(c);
    }
}

/* Returns the streams that a job which was told to stop awaits in vain: their reader reads nothing,
 * or a file system does not respond. */
static unsigned awaited_in_vain(const struct dt_core *c, const char **what)
{
    return c->told_to_stop ? dt_core_late_streams(c, ~c->dropped, 0, what) : 0;
}

/* dtrun does not learn how the ranks of these hosts end. */
static void report_silent_hosts(const struct dt_core *c)
{
    for (size_t i = 0; i < c->plan.nnodes; i++) {
        const struct dt_plan_node *node = &c->plan.nodes[i];
        const struct dt_hostlink *h = c->links.v[node->host];
        struct dt_strbuf b = { 0 };

        if (!h || !dt_hostlink_has_ranks(h) || !h->went)
            continue;
        dt_words_ranks(&b, &node->ranks);
        dt_say("%s has not confirmed that %s ended; its agent, if it still runs, ends everything "
               "of the job there within %d s",
               dt_core_host_name(c, h->host), dt_strbuf_text(&b), c->config->heartbeat_s);
        dt_strbuf_free(&b);
    }
}

static void end_connections(struct dt_core *c)
{
    report_silent_hosts(c);
    dt_hostlinks_close_all(&c->links);
    dt_core_check_idle(c);
}

void dt_stopping_on_patience_over(struct dt_core *c)
{
    const char *what;
    unsigned late = awaited_in_vain(c, &what);

    if (late && c->state == DT_JOB_STOPPING) {
        drop_output_of_ranks(c, late, what);
        return;
    }
    if (late)
        drop_last_output(c, late, what);
    end_connections(c);
}

static void begin(struct dt_core *c)
{
    dt_timers_stop(&c->timers, DT_TIMER_COLLECT);
    c->ops->stdin_hold(c->ops->arg);
    dt_hostlinks_close_opening(&c->links);
}

void dt_stopping_end_ranks(struct dt_core *c, uint32_t ms)
{
    struct dt_msg_stop stop = { .grace_ms = ms };

    begin(c);
    dt_hostlinks_send_all(&c->links, DT_MSG_STOP, &stop);
    dt_core_check_idle(c);
}

/* Many programs save their state on SIGINT, so the ranks receive that signal itself. On STOP,
 * agents begin with SIGTERM. */
static void interrupt_ranks(struct dt_core *c)
{
    struct dt_msg_signal intr = { .signo = SIGINT }, cont = { .signo = SIGCONT };

    dt_hostlinks_send_all(&c->links, DT_MSG_SIGNAL, &intr);
    dt_hostlinks_send_all(&c->links, DT_MSG_SIGNAL, &cont);
}

void dt_stopping_stop(struct dt_core *c)
{
    struct dt_msg_stop stop = { .grace_ms = grace_ms(c) };

    begin(c);
    c->told_to_stop = true;
    /* Ranks that still wait for GO would receive a signal only after GO. They need no grace period.
     */
    if (dt_signal_for_ranks(c->outcome.ended_by) == SIGINT && c->all_started)
        interrupt_ranks(c);
    else
        dt_hostlinks_send_all(&c->links, DT_MSG_STOP, &stop);
    dt_timers_set(&c->timers, DT_TIMER_GRACE, grace_ms(c));
    dt_timers_set(&c->timers, DT_TIMER_READER, READER_MS);
    dt_core_check_idle(c);
}

void dt_stopping_kill(struct dt_core *c)
{
    struct dt_msg_stop stop = { .grace_ms = 0 };

    begin(c);
    c->told_to_stop = true;
    dt_hostlinks_send_all(&c->links, DT_MSG_STOP, &stop);
    dt_timers_stop(&c->timers, DT_TIMER_GRACE);
    if (!dt_timers_is_running(&c->timers, DT_TIMER_PATIENCE)) /* each Ctrl-C gets here */
        dt_timers_set(&c->timers, DT_TIMER_PATIENCE, KILL_PATIENCE_MS);
    dt_core_check_idle(c);
}

void dt_stopping_end_agents(struct dt_core *c)
{
    dt_hostlinks_close_opening(&c->links); /* those that are aside */
    dt_hostlinks_end_all(&c->links);
    dt_timers_stop(&c->timers, DT_TIMER_GRACE);
    dt_timers_set(&c->timers, DT_TIMER_PATIENCE, KILL_PATIENCE_MS);
    if (c->dropped)
        dt_timers_set(&c->timers, DT_TIMER_READER, CUT_MS);
    dt_core_check_idle(c);
}

void dt_stopping_on_cut(struct dt_core *c)
{
    c->left = DT_CORE_STREAMS;
    end_connections(c);
}

void dt_stopping_cut(struct dt_core *c)
{
    dt_timers_stop(&c->timers, DT_TIMER_PATIENCE);
    dt_timers_set(&c->timers, DT_TIMER_CUT, CUT_MS);
}

static bool is_stopping(const struct dt_core *c)
{
    return c->state == DT_JOB_STOPPING || c->state == DT_JOB_ENDING;
}

/* In these states a job can wait without an end only for a reader of its output. */
static void limit_output(struct dt_core *c)
{
    const char *what;
    unsigned late = dt_core_late_streams(c, DT_CORE_STREAMS, 0, &what);

    if (c->told_to_stop)
        return;
    if (c->state != DT_JOB_ENDING || !late) {
        dt_timers_set(&c->timers, DT_TIMER_TIMEOUT, AGAIN_MS);
        return;
    }
    dt_say("the time limit of %d s is over; the last output has %d s to be %s",
           c->config->timeout_s, KILL_PATIENCE_MS / 1000, what);
    c->told_to_stop = true;
    if (!dt_timers_is_running(&c->timers, DT_TIMER_PATIENCE))
        dt_timers_set(&c->timers, DT_TIMER_PATIENCE, KILL_PATIENCE_MS);
}

void dt_stopping_on_timeout(struct dt_core *c)
{
    struct dt_strbuf b = { 0 };

    if (is_stopping(c)) {
        limit_output(c);
        return;
    }
    dt_ranks_words(&c->ranks, true, &b);
    dt_say("the time limit of %d s is over; %s%s", c->config->timeout_s,
           b.len ? "stopping the ranks that are still running: " : "no rank was running",
           dt_strbuf_text(&b));
    dt_strbuf_free(&b);
    dt_core_end(c, DT_EV_STOP, DT_EXIT_TIMEOUT,
                dt_xasprintf("time limit of %d s", c->config->timeout_s));
}

/* A rank that took the failure for the end of the data would compute something else. */
void dt_stopping_on_stdin_failed(struct dt_core *c, int error)
{
    if (is_stopping(c))
        return;
    dt_say("standard input cannot be read: %s; stopping the job", strerror(error));
    dt_core_end(c, DT_EV_STOP, DT_EXIT_LAUNCH, dt_xasprintf("standard input: %s", strerror(error)));
}

/* If the reader of dtrun's output has exited, as head does, the job ends like a program that writes
 * to a pipe: silently, as if by SIGPIPE. */
void dt_stopping_on_output_failed(struct dt_core *c, const char *what, int error)
{
    bool stopping = is_stopping(c);

    if (error != EPIPE)
        dt_say("%s cannot be written: %s%s", what, strerror(error),
               stopping ? "" : "; stopping the job");
    if (!stopping || c->outcome.exit_code == 0) {
        c->outcome.exit_code = error == EPIPE ? DT_EXIT_SIGNAL + SIGPIPE : DT_EXIT_LAUNCH;
        dt_outcome_set_reason(&c->outcome, dt_xasprintf("%s: %s", what, strerror(error)));
    }
    if (!stopping)
        dt_core_event(c, DT_EV_STOP);
    else
        dt_core_check_idle(c);
}
