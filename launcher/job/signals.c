#include "launcher/job/signals.h"

#include <signal.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/watch/signal_meaning.h"
#include "launcher/watch/words.h"

static void stop_by(struct dt_signals *s, int signo)
{
    struct dt_core *c = s->core;
    uint32_t alive = dt_ranks_alive(&c->ranks);
    struct dt_strbuf b = { 0 };

    s->stopped_by = signo;
    if (c->state == DT_JOB_ENDING && c->outcome.exit_code != 0) { /* dtrun has said why it ends */
        dt_core_event(c, DT_EV_STOP);
        return;
    }
    dt_words_count(&b, alive, "rank");
    dt_say("%s by %s%s%s%s%s%s", signo == SIGINT ? "interrupted" : "told to end",
           dt_signal_name(signo), s->reporter ? ", which was sent to dtrun-agent on " : "",
           s->reporter ? s->reporter : "", alive ? "; stopping " : "",
           alive ? dt_strbuf_text(&b) : "",
           alive && signo == SIGINT ? " (again: kill at once)" : "");
    dt_strbuf_free(&b);
    c->outcome.ended_by = signo;
    dt_core_end(c, DT_EV_STOP, DT_EXIT_SIGNAL + signo, dt_xstrdup(dt_signal_name(signo)));
}

/* A new rank would die of the signal before it handles it, so the signal does not wait for one. */
static void forward(struct dt_signals *s, int signo)
{
    struct dt_msg_signal m = { .signo = signo };

    if (!s->core->ranks.go || s->core->state == DT_JOB_RECOVERING)
        dt_say("%s reaches no rank, because none runs now", dt_signal_name(signo));
    else
        dt_hostlinks_send_all(&s->core->links, DT_MSG_SIGNAL, &m);
}

static void act_on(struct dt_signals *s, int signo)
{
    bool stopping = s->core->state == DT_JOB_STOPPING;

    switch (dt_signal_meaning(signo, stopping && !s->stopped_by ? SIGTERM : s->stopped_by)) {
    case DT_SIGNAL_FORWARD:
        forward(s, signo);
        break;
    case DT_SIGNAL_PAUSE:
        dt_pause_begin(s->pause);
        break;
    case DT_SIGNAL_STOP:
        stop_by(s, signo);
        break;
    case DT_SIGNAL_KILL:
        s->core->left = DT_CORE_STREAMS;
        dt_core_event(s->core, DT_EV_KILL);
        break;
    case DT_SIGNAL_IGNORE:
        break;
    }
}

void dt_signals_check_steps(struct dt_signals *s)
{
    if (dt_timers_is_running(&s->core->timers, DT_TIMER_GATHER) &&
        !dt_hostlinks_await_signals(&s->core->links, s->gather.gathered))
        dt_signal_gather_complete(&s->gather, &s->core->timers,
                                  s->batch ? DT_GATHER_BATCH_MS : DT_GATHER_MS);
}

/* h: the host that reports the signal, or NULL. */
static void gather(struct dt_signals *s, struct dt_hostlink *h, int signo)
{
    if (!dt_signal_gather_add(&s->gather, &s->core->timers, signo, h != NULL))
        return;
    if (h)
        h->signalled |= dt_signal_bit(signo);
    if (h && !s->batch)
        s->reporter = dt_core_host_name(s->core, h->host);
    dt_signals_check_steps(s);
}

void dt_signals_on_signal(struct dt_signals *s, int signo)
{
    bool is_keyboards = signo == SIGINT || signo == SIGTSTP;
    uint64_t reported;

    if (s->batch && !is_keyboards) {
        gather(s, NULL, signo);
        return;
    }
    if (s->batch) {
        reported = dt_signal_gather_skip(&s->gather, &s->core->timers, signo);
        dt_hostlinks_end_gathering(&s->core->links, reported, dt_core_now(s->core));
    }
    s->reporter = NULL;
    act_on(s, signo);
}

bool dt_signals_is_for_host(const struct dt_signals *s, const struct dt_hostlink *h, int signo)
{
    return !s->batch && !h->in_step && dt_signal_meaning(signo, 0) == DT_SIGNAL_STOP;
}

bool dt_signals_stop_soon(const struct dt_signals *s)
{
    return dt_signal_gather_stops_soon(&s->gather, &s->core->timers);
}

/* Ignores signals that mean nothing to a job. */
void dt_signals_on_signalled(struct dt_signals *s, struct dt_hostlink *h,
                             const struct dt_msg_signalled *m)
{
    enum dt_signal_meaning meaning = dt_signal_meaning(m->signo, 0);

    if (meaning != DT_SIGNAL_STOP && meaning != DT_SIGNAL_FORWARD)
        return;
    dt_verbose("%s: the agent was sent %s", dt_core_host_name(s->core, h->host),
               dt_signal_name(m->signo));
    if (!dt_hostlink_take_late(h, dt_signal_bit((int)m->signo), dt_core_now(s->core)))
        gather(s, h, (int)m->signo);
}

void dt_signals_on_gathered(struct dt_signals *s)
{
    uint64_t signals = dt_signal_gather_over(&s->gather, &s->core->timers);

    /* A signal that gave way to one that ends the job counts as reported, too: its reports that are
     * still to come are late. */
    dt_hostlinks_end_gathering(&s->core->links, s->gather.reported, dt_core_now(s->core));
    for (int signo = 1; signo < 64; signo++) {
        if (signals & dt_signal_bit(signo))
            act_on(s, signo);
    }
}

bool dt_signals_may_explain(const struct dt_signals *s, int signo, uint64_t failed_ns)
{
    uint64_t since_ms = (dt_core_now(s->core) - failed_ns) / 1000000;

    if (dt_signals_stop_soon(s))
        return true;
    if (!s->batch || dt_signal_meaning(signo, 0) != DT_SIGNAL_STOP ||
        since_ms >= DT_GATHER_BATCH_MS)
        return false;
    dt_timers_set(&s->core->timers, DT_TIMER_COLLECT, DT_GATHER_BATCH_MS - since_ms);
    return true;
}
