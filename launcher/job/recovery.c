/* Starting again after a failure: kill what is left, bring lost hosts back, start all ranks from
 * the newest checkpoint. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/watch/words.h"

/* What is sent may be under way, and what is killed takes a while. */
enum { FENCE_MARGIN_MS = 500 };

static void say_restarting(const struct dt_job *j, unsigned delay_s)
{
    struct dt_strbuf b = { 0 };

    dt_words_count(&b, j->core.ranks.np, "rank");
    if (j->restart.newest >= 0)
        dt_strbuf_printf(&b, " from the checkpoint of step %" PRId64, j->restart.newest);
    else
        dt_strbuf_puts(&b, " from the beginning");
    if (delay_s > 0)
        dt_strbuf_printf(&b, " in %u s (restart %u without progress)", delay_s,
                         j->restart.no_progress);
    dt_say("restarting %s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void record(struct dt_job *j, const struct dt_death *cause, const char *text)
{
    dt_history_begin(&j->history,
                     &(struct dt_recovery){
                         .generation = j->core.generation + 1,
                         .cause = (char *)(uintptr_t)text,
                         .from_step = j->restart.newest,
                         .failed_ns = j->failed_ns,
                         .detect_seconds = j->failed_ns > cause->time_ns
                                               ? (double)(j->failed_ns - cause->time_ns) / 1e9
                                               : 0,
                         .seconds = -1,
                         .lost_steps = -1,
                         .delay_s = dt_restart_delay_s(&j->restart),
                     });
}

static void reopen_lost(struct dt_job *j)
{
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        size_t host = j->core.plan.nodes[i].host;

        if (j->core.links.v[host]->phase == DT_HOST_CLOSED && !j->retried[host] && !j->lost[host]) {
            j->retried[host] = true;
            dt_verbose("%s: connecting again", dt_core_host_name(&j->core, host));
            dt_hostlinks_open(&j->core.links, host);
        }
    }
}

static void start_not_before(struct dt_job *j, uint64_t time_ns)
{
    if (time_ns > j->fence_ns)
        j->fence_ns = time_ns;
}

void dt_job_plan_restart(struct dt_job *j, const struct dt_death *cause, const char *text)
{
    unsigned delay_s;

    dt_last_calls_forget(&j->last_calls);
    dt_restart_count(&j->restart);
    delay_s = dt_restart_delay_s(&j->restart);
    say_restarting(j, delay_s);
    record(j, cause, text);
    dt_job_judge_host(j, cause);
    start_not_before(j, dt_core_now(&j->core) + delay_s * UINT64_C(1000000000));
    memset(j->retried, 0, j->core.config->hosts->n * sizeof *j->retried);
}

void dt_job_recover(struct dt_job *j)
{
    struct dt_msg_stop stop = { .grace_ms = 0 };

    j->core.ops->stdin_hold(j->core.ops->arg);
    dt_hostlinks_send_all(&j->core.links, DT_MSG_STOP, &stop);
    reopen_lost(j);
    dt_core_check(&j->core);
}

void dt_job_reconnect(struct dt_job *j)
{
    reopen_lost(j);
}

/* The agent may be alive and merely cut off from dtrun. Its ranks then run until its lease ends,
 * which is one lease after dtrun last sent it anything. If the agent itself does not run, its
 * keeper kills the ranks no later than that. */
void dt_job_fence(struct dt_job *j, const struct dt_hostlink *h)
{
    uint64_t lease_ns = (uint64_t)j->core.config->heartbeat_s * 1000000000;

    if (h->orphans_ns)
        start_not_before(j, h->orphans_ns + lease_ns + FENCE_MARGIN_MS * UINT64_C(1000000));
}

/* The agents of hosts that get ranks sweep these hosts first. */
static void fence_left_out(struct dt_job *j)
{
    for (size_t i = 0; i < j->core.config->hosts->n; i++) {
        if (j->core.links.v[i] && !dt_plan_node_on(&j->core.plan, i))
            dt_job_fence(j, j->core.links.v[i]);
    }
}

/* When it is too early yet, another IDLE will come. */
static void start_behind_fence(struct dt_job *j)
{
    uint64_t now = dt_core_now(&j->core);

    fence_left_out(j);
    if (now < j->fence_ns)
        dt_timers_set(&j->core.timers, DT_TIMER_FENCE, (j->fence_ns - now) / 1000000 + 1);
    else if (dt_hostlinks_any_closes(&j->core.links))
        return; /* with it an agent on this machine is killed that does not run at all */
    else if (dt_network_list_addresses(&j->network))
        dt_core_event(&j->core, DT_EV_USABLE);
    else
        dt_core_end(&j->core, DT_EV_FAILED, DT_EXIT_LAUNCH, NULL);
}

void dt_job_relaunch(struct dt_job *j)
{
    if (dt_job_rehost(j))
        start_behind_fence(j);
}

void dt_job_recovered(struct dt_job *j, bool restored_known, int64_t restored)
{
    struct dt_recovery *r = dt_history_last(&j->history);
    struct dt_strbuf b = { 0 };

    dt_history_recovered(&j->history, (double)(dt_core_now(&j->core) - r->failed_ns) / 1e9);
    if (restored_known) {
        if (j->reached_is_known)
            r->lost_steps = dt_restart_lost_steps(j->reached, restored);
        j->reached = restored;
        j->reached_is_known = false;
    }
    dt_strbuf_puts(&b, j->restart.linked ? "recovered in " : "all ranks run again after ");
    dt_words_duration(&b, r->seconds);
    if (r->lost_steps >= 0) {
        dt_strbuf_puts(&b, ", ");
        dt_words_count(&b, (uint64_t)r->lost_steps, "step");
        dt_strbuf_puts(&b, " lost");
    }
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* What was committed is durable: who does not find it looks at another directory, or somebody has
 * removed it. */
static void say_behind(const struct dt_job *j, int64_t restored)
{
    if (restored >= 0)
        dt_say("going on from step %" PRId64 ", although a checkpoint of step %" PRId64
               " was committed; do all hosts see the same checkpoint directory?",
               restored, j->restart.newest);
    else
        dt_say("starting from the beginning, although a checkpoint of step %" PRId64
               " was committed; do all hosts see the same checkpoint directory?",
               j->restart.newest);
}

/* The restart whose first restore this is, or NULL: it may be late, of the generation before. */
static struct dt_recovery *recovery_of(const struct dt_job *j)
{
    struct dt_recovery *r = dt_history_last(&j->history);
    bool first = j->history.recovering || !j->restart.checkpoints;

    return r && first && r->generation == j->core.generation ? r : NULL;
}

/* A newer one than was announced was committed by a rank that died before it could say so, or of
 * whom that was heard late, or by an earlier job, or was out of sight for a while. */
static void on_restored(struct dt_job *j, int64_t step)
{
    struct dt_recovery *r = recovery_of(j);
    int64_t announced = r ? r->from_step : j->restart.newest;

    if (step < j->restart.newest)
        say_behind(j, step);
    else if ((r || j->restart.checkpoints) && step > announced)
        dt_say("going on from step %" PRId64 ", of which a checkpoint was found", step);
    else if (!j->restart.checkpoints && step < 0 && j->core.config->resume && j->core.config->seen)
        dt_say("starting afresh: the host of rank 0 sees no checkpoint in %s, this machine does",
               j->checkpoint_dir);
    if (r)
        r->from_step = step;
    dt_restart_restored(&j->restart, step);
}

void dt_job_on_commit(struct dt_job *j, const struct dt_msg_commit *m)
{
    if (m->generation != j->core.generation)
        return;
    if (m->restored)
        on_restored(j, m->step);
    else
        dt_restart_committed(&j->restart, m->step);
    if (j->history.recovering && j->core.generation == dt_history_last(&j->history)->generation)
        dt_job_recovered(j, m->restored, m->step);
    dt_verbose("checkpoint of step %" PRId64 " %s", m->step,
               m->restored ? "restored" : "committed");
}
