/* Where the events of job.h arrive: what each means for the parts of the engine. */
#include <stdio.h>

#include "launcher/base/log.h"
#include "launcher/job/engine.h"
#include "launcher/job/stopping.h"

void dt_job_greeted(struct dt_job *j, size_t host, const struct dt_msg_hello *hello)
{
    struct dt_hostlink *h = j->core.links.v[host];

    dt_hostlink_greeted(h, hello);
    if (dt_rejoin_accept(&j->rejoin, h))
        dt_pulse_ping(&j->pulse, h);
    dt_hostlinks_connect_next(&j->core.links);
    dt_core_check_idle(&j->core);
}

void dt_job_pushed(struct dt_job *j, size_t host, const char *dir)
{
    dt_hostlink_pushed(j->core.links.v[host], dir);
    dt_rejoin_ready(&j->rejoin, j->core.links.v[host]);
    dt_core_check_idle(&j->core);
}

void dt_job_noise(struct dt_job *j, size_t host, const char *line)
{
    if (j->core.links.v[host]->phase == DT_HOST_CONNECTING)
        dt_say_foreign(true, "%s: start-up output: %s", dt_core_host_name(&j->core, host), line);
    else
        dt_say_foreign(false, "%s: %s", dt_core_host_name(&j->core, host), line);
}

static void note_injected_loss(struct dt_job *j, struct dt_hostlink *h,
                               const struct dt_plan_node *node)
{
    enum dt_injected_loss loss = dt_injections_lose_host(&j->injections, node);

    h->injected = loss != DT_LOSS_NOT_INJECTED;
    if (loss == DT_LOSS_OF_HOST)
        dt_rehost_lose(&j->recovery.rehost, h->host);
}

static void on_host_lost(struct dt_job *j, struct dt_hostlink *h, bool had_ranks)
{
    const struct dt_plan_node *node = dt_plan_node_on(&j->core.plan, h->host);

    if (!node)
        return;
    dt_failure_lose_processes(&j->failure, node);
    if (had_ranks && h->went)
        note_injected_loss(j, h, node);
    if ((j->core.state == DT_JOB_STARTING || j->core.state == DT_JOB_RUNNING ||
         j->core.state == DT_JOB_FAILING) &&
        !dt_auxiliaries_pardon_host(&j->auxiliaries, h))
        dt_failure_lose_host(&j->failure, h, node);
    dt_core_event(&j->core, DT_EV_HOST_LOST);
    dt_failure_settle(&j->failure);
}

/* A connection has ended by itself, or was given up because the host is silent. was: its phase
 * until then. */
static void on_link_ended(struct dt_job *j, struct dt_hostlink *h, enum dt_host_phase was)
{
    bool had_ranks = was == DT_HOST_STARTING || was == DT_HOST_RUNNING;

    dt_signals_check_steps(&j->signals);
    dt_rejoin_on_ended(&j->rejoin, h, was);
    if (j->core.state == DT_JOB_CONNECTING)
        dt_say("%s: %s", dt_core_host_name(&j->core, h->host), dt_hostlink_why(h));
    else if (had_ranks || (j->core.state == DT_JOB_RECOVERING && was == DT_HOST_IDLE))
        on_host_lost(j, h, had_ranks);
}

static void give_up_link(struct dt_job *j, struct dt_hostlink *h, const char *why)
{
    enum dt_host_phase was = h->phase;

    dt_hostlink_close(h, "%s", why);
    dt_recovery_fence(&j->recovery, h);
    on_link_ended(j, h, was);
}

void dt_job_disconnected(struct dt_job *j, size_t host, const char *why)
{
    struct dt_hostlink *h = j->core.links.v[host];

    on_link_ended(j, h, dt_hostlink_ended(h, why));
    dt_hostlinks_on_ended(&j->core.links);
    dt_core_check_idle(&j->core);
}

void dt_job_hung_up(struct dt_job *j, size_t host)
{
    dt_hostlinks_on_hung_up(&j->core.links, host);
    dt_core_check_idle(&j->core);
}

static void on_rank_exit(struct dt_job *j, const struct dt_death *end)
{
    dt_restart_reached(&j->recovery.restart, end->step, true);
    if (end->code != 0)
        return;
    dt_stragglers_watch(&j->stragglers);
    dt_auxiliaries_watch(&j->auxiliaries);
}

static void on_process_exit(struct dt_job *j, const struct dt_hostlink *h,
                            const struct dt_msg_exit *m)
{
    const struct dt_death *end = dt_failure_on_exit(&j->failure, h, m);

    if (!end)
        return;
    if (end->auxiliary)
        dt_auxiliaries_on_exit(&j->auxiliaries, end);
    else
        on_rank_exit(j, end);
    if (dt_failure_cause(&j->failure))
        dt_core_event(&j->core, DT_EV_RANK_FAILED);
    dt_failure_settle(&j->failure);
}

static void on_done(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_done *m)
{
    if (m->generation != j->core.generation || !dt_hostlink_has_ranks(h))
        return;
    h->phase = DT_HOST_IDLE;
    dt_signals_check_steps(&j->signals);
    dt_failure_settle(&j->failure);
}

static void on_spawn_failed(struct dt_job *j, struct dt_hostlink *h,
                            const struct dt_msg_spawn_failed *m)
{
    if (!dt_launch_on_spawn_failed(&j->launch, h, m))
        return;
    dt_signals_check_steps(&j->signals);
    if (dt_recovery_leave_refusing(&j->recovery, h->host, m)) {
        dt_failure_settle(&j->failure);
        return;
    }
    dt_launch_refuse(&j->launch, h, m);
    dt_core_event(&j->core, DT_EV_SPAWN_FAILED);
}

static void on_rank_hello(struct dt_job *j, const struct dt_msg_rank_hello *m)
{
    if (dt_launch_on_rank_hello(&j->launch, m) && dt_failure_cause(&j->failure))
        /* one that has already ended never called dt_init, or has left it */
        dt_core_event(&j->core, DT_EV_RANK_FAILED);
}

static void on_reach(struct dt_job *j, struct dt_hostlink *h, struct dt_msg_reach *m)
{
    enum dt_network_news news = dt_network_on_reach(&j->network, h, m);

    if (news == DT_NETWORK_KNOWN)
        dt_launch_maybe_go(&j->launch);
    else if (news == DT_NETWORK_BROKEN && !dt_rehost_leave_out(&j->recovery.rehost))
        dt_launch_refuse_network(&j->launch);
}

static void on_pong(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_pong *m)
{
    const struct dt_msg_step *steps = m->steps.v;

    if (!dt_pulse_on_pong(&j->pulse, h, m) || !dt_hostlink_has_ranks(h))
        return;
    for (uint32_t i = 0; i < m->steps.n; i++)
        dt_restart_reached(&j->recovery.restart, steps[i].step, false);
}

/* When dtrun was told to stop, the last calls of the ranks explain nothing. */
static void on_last_calls(struct dt_job *j, const struct dt_hostlink *h,
                          const struct dt_msg_last_calls *m)
{
    if (!j->core.told_to_stop)
        dt_last_calls_on_report(&j->last_calls, h, m);
}

/* A host that shuts down, which may send its processes several signals, need not end the job. */
static bool is_host_left(struct dt_job *j, const struct dt_hostlink *h, int signo)
{
    if (!dt_signals_is_for_host(&j->signals, h, signo))
        return false;
    if (j->recovery.rehost.lost[h->host])
        return true;
    return !dt_signals_stop_soon(&j->signals) &&
           dt_recovery_leave_host(&j->recovery, h->host, signo);
}

static void on_signalled(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_signalled *m)
{
    if (!is_host_left(j, h, (int)m->signo))
        dt_signals_on_signalled(&j->signals, h, m);
}

static void on_log(struct dt_job *j, const struct dt_hostlink *h, const struct dt_msg_log *m)
{
    dt_say_foreign(m->detail, "%s: %s", dt_core_host_name(&j->core, h->host), m->text);
    dt_history_add_note(&j->recovery.history, j->core.generation, h->host, m->text);
}

static void on_answer(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_answer *m)
{
    dt_core_on_answer(&j->core, h, m);
    dt_pause_answered(&j->pause);
    dt_failure_settle(&j->failure);
}

/* Handles a message about a generation that begins. This function and the next three return false
 * if the message is about something else. */
static bool on_launch_message(struct dt_job *j, struct dt_hostlink *h, uint8_t type,
                              union dt_msg *msg)
{
    switch (type) {
    case DT_MSG_READY:
        dt_launch_on_ready(&j->launch, h, &msg->ready);
        return true;
    case DT_MSG_REACH:
        on_reach(j, h, &msg->reach);
        return true;
    case DT_MSG_STARTED:
        dt_launch_on_started(&j->launch, h, &msg->started);
        return true;
    case DT_MSG_SPAWN_FAILED:
        on_spawn_failed(j, h, &msg->spawn_failed);
        return true;
    case DT_MSG_RANK_HELLO:
        on_rank_hello(j, &msg->rank_hello);
        return true;
    case DT_MSG_FENCE:
        dt_launch_on_fence(&j->launch, h, &msg->fence);
        return true;
    case DT_MSG_SHARE:
        dt_launch_on_share(&j->launch, h, &msg->share);
        return true;
    default:
        return false;
    }
}

/* Handles a message about ranks and hosts that run. */
static bool on_progress_message(struct dt_job *j, struct dt_hostlink *h, uint8_t type,
                                union dt_msg *msg)
{
    switch (type) {
    case DT_MSG_PONG:
        on_pong(j, h, &msg->pong);
        return true;
    case DT_MSG_MPI_STATE:
        dt_stragglers_on_mpi_state(&j->stragglers, &msg->mpi_state);
        return true;
    case DT_MSG_LIMIT:
        dt_pulse_on_limit(&j->pulse, h, &msg->limit);
        return true;
    case DT_MSG_COMMIT:
        dt_recovery_on_commit(&j->recovery, &msg->commit);
        return true;
    case DT_MSG_TRIGGERED:
        dt_injections_on_triggered(&j->injections, msg->triggered.fault);
        return true;
    case DT_MSG_LOG:
        on_log(j, h, &msg->log);
        return true;
    default:
        return false;
    }
}

/* Handles a message about how ranks fail, stop and end. */
static bool on_end_message(struct dt_job *j, struct dt_hostlink *h, uint8_t type, union dt_msg *msg)
{
    switch (type) {
    case DT_MSG_EXIT:
        on_process_exit(j, h, &msg->exit);
        return true;
    case DT_MSG_FAILED:
        dt_failure_on_failed(&j->failure, &msg->failed);
        return true;
    case DT_MSG_LAST_CALLS:
        on_last_calls(j, h, &msg->last_calls);
        return true;
    case DT_MSG_SIGNALLED:
        on_signalled(j, h, &msg->signalled);
        return true;
    case DT_MSG_ANSWER:
        on_answer(j, h, &msg->answer);
        return true;
    case DT_MSG_DONE:
        on_done(j, h, &msg->done);
        return true;
    default:
        return false;
    }
}

/* Handles a message about what ranks read and write. */
static bool on_stream_message(struct dt_job *j, struct dt_hostlink *h, uint8_t type,
                              union dt_msg *msg)
{
    switch (type) {
    case DT_MSG_STDIN_CREDIT:
        dt_rank_io_on_stdin_credit(&j->io, h, &msg->stdin_credit);
        return true;
    case DT_MSG_OUTPUT:
        if (!dt_rank_io_on_output(&j->io, &msg->output))
            give_up_link(j, h, "has sent more output than it may");
        return true;
    case DT_MSG_OUTPUT_EOF:
        dt_rank_io_on_output_eof(&j->io, &msg->output_eof);
        dt_failure_settle(&j->failure);
        return true;
    case DT_MSG_OUTPUT_QUIET:
        dt_rank_io_on_output_quiet(&j->io, &msg->output_quiet);
        return true;
    default:
        return false;
    }
}

/* Returns the process of which the message says something that only its own host knows, or -1.
 * (FAILED names any rank that is to blame.) */
static int subject_of(uint8_t type, const union dt_msg *msg)
{
    switch (type) {
    case DT_MSG_RANK_HELLO:
        return (int)msg->rank_hello.rank;
    case DT_MSG_MPI_STATE:
        return (int)msg->mpi_state.rank;
    case DT_MSG_COMMIT:
        return 0;
    case DT_MSG_EXIT:
        return (int)msg->exit.rank;
    case DT_MSG_LAST_CALLS:
        return (int)msg->last_calls.rank;
    case DT_MSG_OUTPUT:
        return (int)msg->output.rank;
    case DT_MSG_OUTPUT_EOF:
        return (int)msg->output_eof.rank;
    case DT_MSG_OUTPUT_QUIET:
        return (int)msg->output_quiet.rank;
    default:
        return -1;
    }
}

/* What a host says about a rank of another one is ignored. It may come from a host that ranks have
 * left, or from one that is hostile. */
static bool is_about_another_host(const struct dt_job *j, const struct dt_hostlink *h, uint8_t type,
                                  const union dt_msg *msg)
{
    const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, subject_of(type, msg));

    return node && node->host != h->host;
}

void dt_job_message(struct dt_job *j, size_t host, uint8_t type, union dt_msg *msg)
{
    struct dt_hostlink *h = j->core.links.v[host];

    h->heartbeat.heard_ns = dt_core_now(&j->core);
    if (is_about_another_host(j, h, type, msg))
        return;
    if (!on_launch_message(j, h, type, msg) && !on_progress_message(j, h, type, msg) &&
        !on_end_message(j, h, type, msg))
        on_stream_message(j, h, type, msg);
    dt_core_check_idle(&j->core);
}

void dt_job_shown(struct dt_job *j, uint32_t number, int fd, size_t n)
{
    dt_rank_io_shown(&j->io, number, fd, n);
}

void dt_job_output_moved(struct dt_job *j)
{
    if (j->core.state == DT_JOB_ENDING)
        dt_core_check_idle(&j->core);
}

void dt_job_stdin(struct dt_job *j, const void *data, size_t n)
{
    dt_rank_io_stdin(&j->io, data, n);
}

void dt_job_stdin_eof(struct dt_job *j)
{
    dt_rank_io_stdin_eof(&j->io);
}

void dt_job_stdin_failed(struct dt_job *j, int error)
{
    dt_stopping_on_stdin_failed(&j->core, error);
}

void dt_job_output_failed(struct dt_job *j, const char *what, int error)
{
    dt_stopping_on_output_failed(&j->core, what, error);
}

void dt_job_signal(struct dt_job *j, int signo)
{
    if (j->core.state != DT_JOB_OVER)
        dt_signals_on_signal(&j->signals, signo);
}

static void give_up_silent(struct dt_job *j, struct dt_hostlink *h)
{
    char why[64];

    snprintf(why, sizeof why, "has not answered for %d s", j->core.config->heartbeat_s);
    give_up_link(j, h, why);
}

static void on_tick(struct dt_job *j)
{
    uint64_t now = dt_core_now(&j->core);

    dt_pulse_begin_tick(&j->pulse);
    for (size_t i = 0; i < j->core.config->hosts->n; i++) {
        struct dt_hostlink *h = j->core.links.v[i];

        if (h && !dt_pulse_check(&j->pulse, h, now))
            give_up_silent(j, h);
    }
    dt_pulse_end_tick(&j->pulse, now);
    if (!j->pause.pausing)
        dt_hang_detect_watch(&j->hang_detect);
    dt_core_check_idle(&j->core);
}

/* --timeout */
static void on_timeout(struct dt_job *j)
{
    if (!dt_auxiliaries_end(&j->auxiliaries))
        dt_stopping_on_timeout(&j->core);
}

void dt_job_timer(struct dt_job *j, enum dt_job_timer timer)
{
    dt_timers_expired(&j->core.timers, timer);
    switch (timer) {
    case DT_TIMER_COLLECT:
        dt_core_event(&j->core, DT_EV_SETTLED);
        break;
    case DT_TIMER_LAST_CALLS:
        dt_last_calls_on_due(&j->last_calls);
        break;
    case DT_TIMER_FENCE:
        dt_core_check_idle(&j->core);
        break;
    case DT_TIMER_OUTAGE:
        if (j->core.state == DT_JOB_RECOVERING)
            dt_rehost_try_again(&j->recovery.rehost);
        break;
    case DT_TIMER_REJOIN:
        dt_rejoin_try(&j->rejoin);
        break;
    case DT_TIMER_PAUSE:
        dt_pause_on_late(&j->pause);
        break;
    case DT_TIMER_GATHER:
        dt_signals_on_gathered(&j->signals);
        break;
    case DT_TIMER_GRACE:
        dt_core_event(&j->core, DT_EV_KILL);
        break;
    case DT_TIMER_PATIENCE:
        dt_stopping_on_patience_over(&j->core);
        break;
    case DT_TIMER_READER:
        dt_stopping_on_reader_late(&j->core);
        break;
    case DT_TIMER_CUT:
        dt_stopping_on_cut(&j->core);
        break;
    case DT_TIMER_TIMEOUT:
        on_timeout(j);
        break;
    case DT_TIMER_START:
        if (!dt_rejoin_leave_late(&j->rejoin))
            dt_launch_on_timeout(&j->launch);
        break;
    case DT_TIMER_TICK:
        on_tick(j);
        break;
    case DT_TIMER_STRAGGLERS:
        dt_stragglers_on_late(&j->stragglers);
        break;
    case DT_TIMER_MISSED:
        dt_stragglers_on_missed(&j->stragglers);
        break;
    case DT_TIMER_AUXILIARIES:
        dt_auxiliaries_on_late(&j->auxiliaries);
        break;
    case DT_JOB_TIMERS:
        break;
    }
}
