#include "launcher/job/recovery.h"

#include <inttypes.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/watch/signal_meaning.h"
#include "launcher/watch/words.h"

/* Added to the lease, because a message that renews it may still arrive, and killing takes time. */
enum { FENCE_MARGIN_MS = 500 };

static void say_restarting(const struct dt_recovery *r, unsigned delay_s)
{
    struct dt_strbuf b = { 0 };

    dt_words_count(&b, r->core->ranks.np, "rank");
    if (r->restart.newest >= 0)
        dt_strbuf_printf(&b, " from the checkpoint of step %" PRId64, r->restart.newest);
    else if (r->restart.linked) /* another program may have checkpoints of its own */
        dt_strbuf_puts(&b, " from the beginning");
    if (delay_s > 0)
        dt_strbuf_printf(&b, " in %u s (restart %u without progress)", delay_s,
                         r->restart.no_progress);
    dt_say("restarting %s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void record(struct dt_recovery *r, const struct dt_death *cause, const char *text,
                   uint64_t failed_ns)
{
    dt_history_begin(&r->history,
                     &(struct dt_recovery_record){
                         .generation = r->core->generation + 1,
                         .cause = (char *)(uintptr_t)text,
                         .from_step = r->restart.newest,
                         .failed_ns = failed_ns,
                         .detect_seconds = failed_ns > cause->time_ns
                                               ? (double)(failed_ns - cause->time_ns) / 1e9
                                               : 0,
                         .seconds = -1,
                         .lost_steps = -1,
                         .delay_s = dt_restart_delay_s(&r->restart),
                     });
}

/* Returns for how long the ranks have run since the last restart; 0 if they did not all run. */
static double seconds_run(const struct dt_recovery *r)
{
    const struct dt_recovery_record *last = dt_history_last(&r->history);

    if (!last || last->seconds < 0)
        return 0;
    return (double)(dt_core_now(r->core) - last->failed_ns) / 1e9 - last->seconds;
}

static void start_not_before(struct dt_recovery *r, uint64_t time_ns)
{
    if (time_ns > r->fence_ns)
        r->fence_ns = time_ns;
}

void dt_recovery_plan(struct dt_recovery *r, const struct dt_death *cause, const char *text,
                      uint64_t failed_ns)
{
    unsigned delay_s;

    dt_restart_count(&r->restart, seconds_run(r));
    delay_s = dt_restart_delay_s(&r->restart);
    say_restarting(r, delay_s);
    dt_rehost_say_away(&r->rehost);
    record(r, cause, text, failed_ns);
    dt_rehost_begin(&r->rehost, cause, r->restart.no_progress <= 1);
    start_not_before(r, dt_core_now(r->core) + delay_s * UINT64_C(1000000000));
}

static bool is_started(const struct dt_core *c)
{
    return c->state == DT_JOB_STARTING || c->state == DT_JOB_RUNNING;
}

static bool is_any_alive(const struct dt_core *c, const struct dt_u32s *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        if (!c->ranks.v[numbers->v[i]].ended)
            return true;
    }
    return false;
}

/* Whether the loss of the host would be a failure. It would not be one if dtrun already handles a
 * failure or restarts the job, or if the host's processes or all ranks have ended. */
static bool is_needed(const struct dt_core *c, const struct dt_plan_node *node)
{
    return is_started(c) && node && c->ranks.ended_well < c->ranks.np &&
           (is_any_alive(c, &node->ranks) || is_any_alive(c, &node->auxiliaries));
}

static bool may_leave_host(struct dt_recovery *r, size_t host, bool needed)
{
    enum dt_job_state state = r->core->state;

    if (!is_started(r->core) && state != DT_JOB_FAILING && state != DT_JOB_RECOVERING)
        return false;
    if (needed && dt_restart_verdict(&r->restart, false) != DT_RESTART_YES)
        return false;
    return dt_rehost_spare(&r->rehost, host);
}

static void restart_without(struct dt_recovery *r, const struct dt_plan_node *node,
                            const char *text)
{
    const struct dt_death cause = dt_death_of_host(node->ranks.v[0], dt_core_now(r->core));

    dt_recovery_plan(r, &cause, text, cause.time_ns);
    r->grace_ms = (uint32_t)r->core->config->kill_grace_s * 1000;
    dt_core_event(r->core, DT_EV_RESTART);
}

bool dt_recovery_leave_host(struct dt_recovery *r, size_t host, int signo)
{
    const struct dt_plan_node *node = dt_plan_node_on(&r->core->plan, host);
    bool needed = is_needed(r->core, node);
    struct dt_strbuf text = { 0 };

    if (!may_leave_host(r, host, needed))
        return false;
    dt_strbuf_printf(&text, "%s: dtrun-agent was sent %s; leaving this host",
                     dt_core_host_name(r->core, host), dt_signal_name(signo));
    dt_say("%s", dt_strbuf_text(&text));
    if (needed)
        restart_without(r, node, dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    return true;
}

/* If a leftover has no error, its processes were killed but have not ended yet. They run nothing of
 * the program any more, so their ranks may start on another host. If a process cannot be killed, it
 * may still run, so the job must not restart. A host that has come back may lack something that the
 * others have, such as a file system that is not mounted. */
static bool may_do_without(const struct dt_hostlink *h, const struct dt_msg_spawn_failed *why)
{
    return why->step == DT_SPAWN_LEFTOVER ? why->error == 0 : h->aside;
}

static void say_leaving(const struct dt_recovery *r, size_t host,
                        const struct dt_msg_spawn_failed *why)
{
    struct dt_strbuf b = { 0 };

    if (why->step == DT_SPAWN_LEFTOVER)
        dt_strbuf_puts(&b, why->what);
    else
        dt_words_spawn(&b, why, false);
    dt_say("%s: %s; leaving this host", dt_core_host_name(r->core, host), dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* The connection to a host that came back is closed, so that the host is tried again later. Stuck
 * processes would delay each restart. */
bool dt_recovery_leave_refusing(struct dt_recovery *r, size_t host,
                                const struct dt_msg_spawn_failed *why)
{
    struct dt_hostlink *h = r->core->links.v[host];
    bool left = r->rehost.lost[host];

    if (!may_do_without(h, why) || !may_leave_host(r, host, false))
        return false;
    if (!left)
        say_leaving(r, host, why);
    if (why->step != DT_SPAWN_LEFTOVER) {
        dt_hostlink_close(h, "could not start ranks");
        h->told = true;
    }
    dt_rehost_begin_anew(&r->rehost);
    return true;
}

void dt_recovery_begin(struct dt_recovery *r)
{
    struct dt_msg_stop stop = { .grace_ms = r->grace_ms };

    r->grace_ms = 0;
    r->core->ops->stdin_hold(r->core->ops->arg);
    dt_hostlinks_send_all(&r->core->links, DT_MSG_STOP, &stop);
    dt_rehost_reconnect(&r->rehost);
    dt_core_check_idle(r->core);
}

/* The agent may be alive and merely cut off from dtrun. Then it kills its ranks when its lease runs
 * out, at most lease_ns after dtrun's last message to it. If the agent itself does not run then,
 * its keeper kills them within the margin. */
void dt_recovery_fence(struct dt_recovery *r, const struct dt_hostlink *h)
{
    uint64_t lease_ns = (uint64_t)r->core->config->heartbeat_s * 1000000000;

    if (h->orphans_ns)
        start_not_before(r, h->orphans_ns + lease_ns + FENCE_MARGIN_MS * UINT64_C(1000000));
}

/* Hosts that get ranks again need no fence: their agents kill what is left there first. */
static void fence_unused_hosts(struct dt_recovery *r)
{
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        if (r->core->links.v[i] && !dt_plan_node_on(&r->core->plan, i))
            dt_recovery_fence(r, r->core->links.v[i]);
    }
}

/* If it is too early, DT_EV_IDLE is raised again later: when the fence's timer expires, or when the
 * links that are being closed have ended. A link over the local transport ends only when its
 * agent has ended. An agent that does not end in time, such as a suspended one, is killed. */
static void start_after_fence(struct dt_recovery *r)
{
    uint64_t now = dt_core_now(r->core);

    fence_unused_hosts(r);
    if (now < r->fence_ns)
        dt_timers_set(&r->core->timers, DT_TIMER_FENCE, (r->fence_ns - now) / 1000000 + 1);
    else if (dt_hostlinks_any_closing(&r->core->links))
        return;
    else if (dt_network_list_addresses(r->network))
        dt_core_event(r->core, DT_EV_USABLE);
    else
        dt_core_end(r->core, DT_EV_FAILED, DT_EXIT_LAUNCH, NULL);
}

void dt_recovery_relaunch(struct dt_recovery *r)
{
    if (dt_rehost_place(&r->rehost))
        start_after_fence(r);
}

void dt_recovery_complete(struct dt_recovery *r, bool restored_known, int64_t restored)
{
    struct dt_recovery_record *last = dt_history_last(&r->history);
    struct dt_strbuf b = { 0 };

    dt_history_recovered(&r->history, (double)(dt_core_now(r->core) - last->failed_ns) / 1e9);
    if (restored_known)
        last->lost_steps = dt_restart_go_on(&r->restart, restored);
    dt_strbuf_puts(&b, r->restart.linked ? "recovered in " : "all ranks run again after ");
    dt_words_duration(&b, last->seconds);
    if (last->lost_steps >= 0) {
        dt_strbuf_puts(&b, ", ");
        dt_words_count(&b, (uint64_t)last->lost_steps, "step");
        dt_strbuf_puts(&b, " lost");
    }
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* A committed checkpoint is durable. If ranks do not find it, they read another directory, or
 * somebody has removed it. */
static void say_behind(const struct dt_recovery *r, int64_t restored)
{
    if (restored >= 0)
        dt_say("continuing from step %" PRId64 ", although a checkpoint of step %" PRId64
               " was committed; do all hosts see the same checkpoint directory?",
               restored, r->restart.newest);
    else
        dt_say("starting from the beginning, although a checkpoint of step %" PRId64
               " was committed; do all hosts see the same checkpoint directory?",
               r->restart.newest);
}

/* Returns the record of the last restart if the restore that was just reported is the first one
 * since then, else NULL. If dtrun did not know that the program restores, it did not wait for this
 * restore: the recovery is already complete. If the ranks that restored are about to be restarted,
 * the last record belongs to the next generation, not to theirs. */
static struct dt_recovery_record *find_record(const struct dt_recovery *r)
{
    struct dt_recovery_record *last = dt_history_last(&r->history);
    bool first = dt_history_is_recovering(&r->history) || !r->restart.checkpoints;

    return last && first && last->generation == r->core->generation ? last : NULL;
}

/* A checkpoint may be newer than those that dtrun knows of: the rank that committed it died before
 * it could report that, the report came late, an earlier job saved it, or the directory was out of
 * reach for a while. */
static void on_restored(struct dt_recovery *r, int64_t step)
{
    struct dt_recovery_record *record = find_record(r);
    int64_t announced = record ? record->from_step : r->restart.newest;

    if (step < r->restart.newest)
        say_behind(r, step);
    else if ((record || r->restart.checkpoints) && step > announced)
        dt_say("continuing from step %" PRId64 ": the ranks found a newer checkpoint", step);
    else if (!r->restart.checkpoints && step < 0 && r->core->config->resume &&
             r->core->config->has_checkpoints)
        dt_say(
            "starting afresh: the host of rank 0 sees no checkpoint in %s, but this machine does",
            r->checkpoint_dir);
    if (record)
        record->from_step = step;
    dt_restart_restored(&r->restart, step);
}

void dt_recovery_on_commit(struct dt_recovery *r, const struct dt_msg_commit *m)
{
    bool restored = m->kind != DT_COMMITTED;

    if (m->generation != r->core->generation)
        return;
    if (m->kind == DT_RESTORE_BEGUN) {
        dt_verbose("rank 0 begins to restore");
        r->restart.restoring = true;
        return;
    }
    if (restored)
        on_restored(r, m->step);
    else
        dt_restart_committed(&r->restart, m->step);
    if (dt_history_is_recovering(&r->history) &&
        r->core->generation == dt_history_last(&r->history)->generation)
        dt_recovery_complete(r, restored, m->step);
    if (m->step >= 0)
        dt_verbose("checkpoint of step %" PRId64 " %s", m->step,
                   restored ? "restored" : "committed");
    else
        dt_verbose("no checkpoint restored");
}

void dt_recovery_init(struct dt_recovery *r, struct dt_core *core, struct dt_network *network,
                      const char *checkpoint_dir)
{
    *r = (struct dt_recovery){ .core = core,
                               .network = network,
                               .checkpoint_dir = checkpoint_dir,
                               .restart = dt_restart_init(core->config->max_restarts) };
    dt_rehost_init(&r->rehost, core, network, &r->history);
}

void dt_recovery_free(struct dt_recovery *r)
{
    dt_rehost_free(&r->rehost);
    dt_history_free(&r->history);
}
