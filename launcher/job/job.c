#include "launcher/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/job/report.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/job/stopping.h"
#include "launcher/watch/words.h"

enum { SCREEN_LINES = 20 };

static void act_start(struct dt_job *j)
{
    dt_core_begin_generation(&j->core);
    dt_injections_begin(&j->injections, j->recovery.restart.restarts);
    dt_failure_forget(&j->failure);
    dt_hang_detect_forget(&j->hang_detect);
    dt_timers_stop(&j->core.timers, DT_TIMER_STRAGGLERS);
    dt_timers_stop(&j->core.timers, DT_TIMER_MISSED);
    dt_timers_stop(&j->core.timers, DT_TIMER_AUXILIARIES);
    dt_network_probe(&j->network);
    dt_launch_start(&j->launch);
    dt_rank_io_begin(&j->io);
}

static void say_start(const struct dt_job *j)
{
    struct dt_strbuf b = { 0 };

    dt_words_count(&b, j->core.ranks.np, "rank");
    dt_strbuf_puts(&b, " on ");
    dt_words_count(&b, j->core.plan.nnodes, "host");
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        const struct dt_plan_node *node = &j->core.plan.nodes[i];

        dt_strbuf_printf(&b, "%s %s ", i ? "," : ":", dt_core_host_name(&j->core, node->host));
        dt_words_list(&b, &node->ranks);
    }
    if (j->core.ranks.nprocs > j->core.ranks.np) {
        dt_strbuf_puts(&b, "; beside them a scheduler and ");
        dt_words_count(&b, (uint64_t)dt_plan_servers(&j->core.plan), "server");
    }
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void act_run(struct dt_job *j)
{
    dt_verbose("all %u ranks run, %.3f s after the start", j->core.ranks.np,
               (double)(dt_core_now(&j->core) - j->began_ns) / 1e9);
    if (j->core.generation == 1 && j->terminal)
        say_start(j);
    dt_rejoin_watch(&j->rejoin);
    /* If the program does not restore, no restore will report that the job has recovered. */
    if (dt_history_is_recovering(&j->recovery.history) && !j->recovery.restart.checkpoints &&
        !j->recovery.restart.restoring)
        dt_recovery_complete(&j->recovery, j->recovery.restart.linked, -1);
}

/* A program that ignores errors of its calls and exits with 0 has not succeeded. */
static void fail_if_errors_ignored(struct dt_job *j)
{
    char *text = j->core.outcome.exit_code == 0 ? dt_failed_calls_judge(&j->failure.calls) : NULL;

    if (!text)
        return;
    dt_say("%s", text);
    dt_outcome_set_reason(&j->core.outcome, text);
    j->core.outcome.exit_code = DT_EXIT_LAUNCH;
}

/* A program that handles SIGTERM may print much before it ends, as Lightning does. */
static void repeat_cause(const struct dt_job *j)
{
    if (j->core.outcome.lines_since >= SCREEN_LINES && !j->core.config->output_hidden)
        dt_say("the job has failed: %s", j->core.outcome.reason);
}

static void say_end(const struct dt_job *j)
{
    double total = (double)(j->ended_ns - j->began_ns) / 1e9;
    struct dt_strbuf b = { 0 };

    if (j->core.outcome.exit_code != 0 || (j->recovery.history.nrecoveries == 0 && !j->terminal))
        return;
    dt_strbuf_puts(&b, "done in ");
    dt_words_duration(&b, total);
    if (j->recovery.history.nrecoveries > 0)
        dt_history_words(&j->recovery.history, j->core.config->hosts, j->recovery.restart.linked,
                         total, &b);
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* If a signal stops the job, a rank may exit with the status that means preempted: also before
 * dtrun acts on the signal, because the rank got it as well or was leaving a host. */
static void count_preempted(struct dt_job *j)
{
    for (uint32_t r = 0; r < j->core.ranks.np && j->core.outcome.ended_by; r++) {
        const struct dt_rank *rank = &j->core.ranks.v[r];

        if (rank->ended && dt_exit_is_preemption(&rank->end))
            j->core.outcome.exit_code = DT_EXIT_PREEMPTED;
    }
}

static void act_finish(struct dt_job *j)
{
    count_preempted(j);
    fail_if_errors_ignored(j);
    if (dt_history_is_recovering(&j->recovery.history) && j->core.outcome.exit_code == 0)
        dt_recovery_complete(&j->recovery, false, -1);
    j->ended_ns = dt_core_now(&j->core);
    j->core.ops->stdin_hold(j->core.ops->arg);
    j->core.ops->output_end(j->core.ops->arg);
    if (j->launch.refusal.text)
        dt_outcome_set_reason(&j->core.outcome, dt_xstrdup(j->launch.refusal.text));
    dt_refusal_say(&j->launch.refusal);
    dt_last_calls_say(&j->last_calls);
    if (j->core.outcome.exit_code == 0)
        dt_injections_say_untriggered(&j->injections, &j->core.plan, &j->core.ranks);
    repeat_cause(j);
    say_end(j);
    dt_stopping_end_agents(&j->core);
}

/* No rank has been started yet. */
static void act_abandon(struct dt_job *j)
{
    j->core.told_to_stop = true;
    dt_hostlinks_close_opening(&j->core.links);
    act_finish(j);
}

static void act_refuse(struct dt_job *j)
{
    j->core.outcome.exit_code = j->launch.refusal.exit_code;
    dt_stopping_end_ranks(&j->core, 0);
}

static void act_fail(struct dt_job *j)
{
    dt_stopping_end_ranks(&j->core, (uint32_t)j->core.config->kill_grace_s * 1000);
}

static void act_decide(struct dt_job *j)
{
    struct dt_strbuf text = { 0 };
    struct dt_death cause;

    if (dt_failure_decide(&j->failure, &cause, &text)) {
        dt_recovery_plan(&j->recovery, &cause, dt_strbuf_text(&text), j->failure.noticed_ns);
        dt_core_event(&j->core, DT_EV_RESTART);
    }
    dt_strbuf_free(&text);
}

static void act_continue(struct dt_job *j)
{
    dt_rank_io_continue(&j->io);
    dt_rejoin_watch(&j->rejoin);
    dt_core_check_idle(&j->core);
}

static void act_check_hosts(struct dt_job *j)
{
    dt_launch_check_hosts(&j->launch);
}

static void act_collect(struct dt_job *j)
{
    dt_failure_collect(&j->failure);
}

static void act_recover(struct dt_job *j)
{
    dt_rejoin_put_off(&j->rejoin);
    dt_last_calls_forget(&j->last_calls);
    dt_timers_stop(&j->core.timers, DT_TIMER_START);
    dt_recovery_begin(&j->recovery);
}

static void act_relaunch(struct dt_job *j)
{
    if (!dt_signals_stop_soon(&j->signals))
        dt_recovery_relaunch(&j->recovery);
}

static void act_reconnect(struct dt_job *j)
{
    dt_rehost_reconnect(&j->recovery.rehost);
}

static void act_stop(struct dt_job *j)
{
    dt_stopping_stop(&j->core);
}

static void act_kill(struct dt_job *j)
{
    dt_stopping_kill(&j->core);
}

static void act_cut(struct dt_job *j)
{
    dt_stopping_cut(&j->core);
}

static void act_leave(struct dt_job *j)
{
    j->core.ops->end(j->core.ops->arg);
}

static void (*const actions[])(struct dt_job *j) = {
    [DT_ACT_NONE] = NULL,
    [DT_ACT_CHECK_HOSTS] = act_check_hosts,
    [DT_ACT_START] = act_start,
    [DT_ACT_RUN] = act_run,
    [DT_ACT_REFUSE] = act_refuse,
    [DT_ACT_COLLECT] = act_collect,
    [DT_ACT_DECIDE] = act_decide,
    [DT_ACT_CONTINUE] = act_continue,
    [DT_ACT_RECOVER] = act_recover,
    [DT_ACT_RELAUNCH] = act_relaunch,
    [DT_ACT_RECONNECT] = act_reconnect,
    [DT_ACT_FAIL] = act_fail,
    [DT_ACT_ABANDON] = act_abandon,
    [DT_ACT_STOP] = act_stop,
    [DT_ACT_KILL] = act_kill,
    [DT_ACT_FINISH] = act_finish,
    [DT_ACT_CUT] = act_cut,
    [DT_ACT_LEAVE] = act_leave,
};

static void act(struct dt_core *c, enum dt_job_action action)
{
    struct dt_job *j = (struct dt_job *)c; /* core is its first member */

    if (actions[action])
        actions[action](j);
}

/* The id is part of file names, so it contains only characters that are safe there. */
static void make_id(struct dt_job *j, uint32_t tag)
{
    const char *program = basename(j->core.config->argv.v[0]);
    char name[40];
    size_t n = 0;

    for (; *program && n + 1 < sizeof name; program++) {
        char c = *program;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || (c == '.' && n > 0);

        name[n++] = plain ? c : '_';
    }
    name[n] = '\0';
    snprintf(j->id, sizeof j->id, "%s-%08x", n ? name : "job", tag);
}

static char *choose_checkpoint_dir(const struct dt_job *j)
{
    const struct dt_job_config *config = j->core.config;
    char name[sizeof "checkpoints/" + sizeof j->id];

    snprintf(name, sizeof name, "checkpoints/%s", j->id);
    return config->checkpoint_dir ? dt_xstrdup(config->checkpoint_dir)
                                  : dt_xpath(config->wdir, name);
}

static void start_timers(struct dt_job *j)
{
    dt_pulse_start(&j->pulse);
    if (j->core.config->timeout_s > 0)
        dt_timers_set(&j->core.timers, DT_TIMER_TIMEOUT,
                      (uint64_t)j->core.config->timeout_s * 1000);
    if (j->core.config->start_timeout_s > 0)
        dt_timers_set(&j->core.timers, DT_TIMER_START,
                      (uint64_t)j->core.config->start_timeout_s * 1000);
}

struct dt_job *dt_job_new(const struct dt_job_config *config, const struct dt_job_origin *origin,
                          const struct dt_job_ops *ops)
{
    struct dt_job *j = dt_xcalloc(1, sizeof *j);

    dt_core_init(&j->core, config, ops, act);
    j->terminal = origin->terminal;
    memcpy(j->secret, origin->secret, sizeof j->secret);
    j->began_ns = dt_core_now(&j->core);
    make_id(j, origin->tag);
    dt_injections_init(&j->injections, &config->inject);
    j->checkpoint_dir = choose_checkpoint_dir(j);
    j->last_calls.core = &j->core;
    j->network = (struct dt_network){ .core = &j->core, .secret = j->secret };
    dt_recovery_init(&j->recovery, &j->core, &j->network, j->checkpoint_dir);
    dt_rejoin_init(&j->rejoin, &j->core, &j->recovery.rehost, &j->network);
    j->io = (struct dt_rank_io){ .core = &j->core };
    dt_hang_detect_init(&j->hang_detect, &j->core, &j->failure.deaths, &j->failure.calls);
    j->pulse = (struct dt_pulse){ .core = &j->core, .hang_detect = &j->hang_detect };
    j->stragglers = (struct dt_stragglers){ .core = &j->core, .deaths = &j->failure.deaths };
    j->auxiliaries = (struct dt_auxiliaries){ .core = &j->core, .deaths = &j->failure.deaths };
    j->pause = (struct dt_pause){ .core = &j->core, .hang_detect = &j->hang_detect };
    j->signals =
        (struct dt_signals){ .core = &j->core, .pause = &j->pause, .batch = origin->batch };
    j->launch = (struct dt_launch){ .core = &j->core,
                                    .network = &j->network,
                                    .injections = &j->injections,
                                    .restart = &j->recovery.restart,
                                    .job_id = j->id,
                                    .secret = j->secret,
                                    .checkpoint_dir = j->checkpoint_dir };
    dt_failure_init(&j->failure, &j->core, &j->hang_detect, &j->signals, &j->recovery.restart);
    return j;
}

const char *dt_job_id(const struct dt_job *j)
{
    return j->id;
}

void dt_job_begin(struct dt_job *j)
{
    for (size_t i = 0; i < j->core.plan.nnodes; i++)
        dt_hostlinks_open(&j->core.links, j->core.plan.nodes[i].host);
    start_timers(j);
}

int dt_job_exit_code(const struct dt_job *j)
{
    return j->core.outcome.exit_code;
}

int dt_job_ended_by(const struct dt_job *j)
{
    return j->core.outcome.ended_by;
}

char *dt_job_report(const struct dt_job *j)
{
    return dt_report_make(&j->core, &j->recovery, (double)(j->ended_ns - j->began_ns) / 1e9);
}

void dt_job_free(struct dt_job *j)
{
    dt_rejoin_free(&j->rejoin);
    dt_recovery_free(&j->recovery);
    dt_network_free(&j->network);
    dt_injections_free(&j->injections);
    dt_launch_free(&j->launch);
    dt_hang_detect_free(&j->hang_detect);
    dt_flight_record_free(&j->last_calls.record);
    dt_failure_free(&j->failure);
    free(j->checkpoint_dir);
    dt_core_free(&j->core);
    free(j);
}
