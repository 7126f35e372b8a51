#include "launcher/agent/ending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/agent/deaths.h"
#include "launcher/agent/generationstate.h"
#include "launcher/agent/ranks/cgroup.h"
#include "launcher/agent/ranks/removetree.h"
#include "launcher/agent/sweep/groupsignal.h"
#include "launcher/agent/sweep/ncclfiles.h"
#include "launcher/agent/sweep/procfs.h"
#include "launcher/agent/sweep/procstat.h"
#include "launcher/agent/unservedwarn.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"

enum {
    DUMP_ROUND_MS = 10,
    SWEEP_ROUND_MS = 10,
    SWEEP_MS = 10 * 1000,       /* how long killed processes may take to end */
    CARETAKERS_MS = 1000,       /* how long those that clean up after the ranks may take to end */
    SHM_MANAGERS_MS = 5 * 1000, /* the same, of PyTorch */
    STUCK_MS = 100,             /* how long all others may take when killed ranks are stuck */
};

static void sweep(struct dt_generation *g);
static void end_outlived(struct dt_generation *g);

void dt_ending_progress(void *arg)
{
    const struct dt_generation *g = arg;

    g->host->alive(g->host->arg);
}

static void end_generation(struct dt_generation *g)
{
    struct dt_msg_done done = { g->start.generation };

    g->phase = DT_GENERATION_OVER;
    if (g->failure)
        dt_channel_send(g->host->channel, DT_MSG_SPAWN_FAILED, g->failure);
    else
        dt_channel_send(g->host->channel, DT_MSG_DONE, &done);
}

void dt_ending_flushed(void *arg)
{
    end_generation(arg);
}

static void on_sweep_round(uv_timer_t *timer)
{
    sweep(timer->data);
}

static void say_unkillable(struct dt_generation *g, size_t n, const struct dt_leftover *left)
{
    bool one = n == 1;
    char *who = dt_xasprintf("%zu process%s of the job (pid %d%s)", n, one ? "" : "es",
                             (int)left->pid, one ? "" : " and others");

    if (left->error)
        dt_generation_say(g,
                          "%s still run%s and cannot be killed: %s; end %s as the user to whom %s",
                          who, one ? "s" : "", strerror(left->error), one ? "it" : "them",
                          one ? "it belongs" : "they belong");
    else
        dt_generation_say(g,
                          "%s %s killed but %s not end: %s inside the kernel (see /proc/%d/stack)",
                          who, one ? "was" : "were", one ? "does" : "do",
                          one ? "it waits" : "they wait", (int)left->pid);
    free(who);
}

/* A sweep of STUCK_MS spares nothing from its beginning on. */
static enum dt_spared spared_until(uint64_t sweep_ends_ns)
{
    uint64_t now = dt_now_ns(), left_ms = now < sweep_ends_ns ? (sweep_ends_ns - now) / 1000000 : 0;

    if (left_ms >= SWEEP_MS - CARETAKERS_MS)
        return DT_SPARE_CARETAKERS;
    return left_ms >= SWEEP_MS - SHM_MANAGERS_MS ? DT_SPARE_SHM_MANAGERS : DT_SPARE_NONE;
}

static void sweep(struct dt_generation *g)
{
    enum dt_spared spared = spared_until(g->sweep_ends_ns);
    struct dt_leftover example = { 0 };
    bool hopeless;
    size_t left;

    if (spared == DT_SPARE_NONE)
        dt_cgroup_kill(g->host->cgroup);
    left = dt_sweep_kill(g->host->groups, spared, &example, dt_ending_progress, g);
    hopeless = example.error && spared != DT_SPARE_CARETAKERS; /* at first it may end by itself */
    if ((left || !dt_cgroup_remove(g->host->cgroup)) && dt_now_ns() < g->sweep_ends_ns &&
        !hopeless) {
        uv_timer_start(&g->timer, on_sweep_round, SWEEP_ROUND_MS, 0);
        return;
    }
    if (left)
        say_unkillable(g, left, &example);
    dt_ncclfiles_remove(DT_NCCLFILES_DIR, dt_ending_progress, g);
    dt_removetree_named(g->host->mpi_dir);
    uv_timer_stop(&g->timer);
    g->phase = DT_GENERATION_FLUSHING;
    if (g->failure)
        end_generation(g);
    else
        dt_relay_finish(g->relay);
}

static void begin_sweep(struct dt_generation *g, uint64_t ms)
{
    g->phase = DT_GENERATION_SWEEPING;
    dt_unservedwarn_end(g);
    g->sweep_ends_ns = dt_now_ns() + ms * 1000000;
    uv_timer_stop(&g->timer);
    sweep(g);
}

void dt_ending_check(struct dt_generation *g)
{
    if (g->alive || g->phase > DT_GENERATION_RUNNING ||
        (g->phase == DT_GENERATION_SPAWNING && !g->failure))
        return;
    begin_sweep(g, SWEEP_MS);
}

/* The thread waits inside the kernel, where no signal wakes it, and has not begun to exit. */
static bool is_stuck(const struct dt_procstat *thread)
{
    return thread->state == 'D' && !thread->dying;
}

/* A process that is stuck inside the kernel, as on a file system that hangs, will run nothing of
 * the program any more, so it counts as ended. Others may wait for a CPU before they exit, or have
 * much memory to give back. */
static void on_kill_over(uv_timer_t *timer)
{
    static const siginfo_t killed = { .si_code = CLD_KILLED, .si_status = SIGKILL };
    struct dt_generation *g = timer->data;

    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        struct dt_process *p = &g->processes[i];

        if (!p->alive || !dt_procstat_any_thread(p->spawned.pid, is_stuck))
            continue;
        p->alive = false;
        g->alive--;
        if (!g->failure)
            dt_deaths_note(g, p, &killed);
    }
    if (!g->failure)
        dt_deaths_report(g);
    if (g->alive)
        uv_timer_start(timer, on_kill_over, SWEEP_MS, 0);
    else
        begin_sweep(g, STUCK_MS);
}

/* all: empty, or the processes of this host, which are read when a rank may have workers. */
static void signal_one(struct dt_generation *g, struct dt_proclist *all, const struct dt_process *p,
                       int signo)
{
    struct dt_groupsignal_workers others = { 0 }, *spared = signo == SIGTERM ? &g->spared : &others;

    if (!p->alive)
        return;
    if (all->n == 0 && dt_groupsignal_spares(signo) && dt_procfs_has_children(p->spawned.pid))
        dt_proclist_read(all, dt_ending_progress, g);
    /* The process group does not exist before the rank has called setpgid. */
    if (!dt_groupsignal_send(all, p->spawned.pid, signo, spared) && !p->outlived.si_pid)
        kill(p->spawned.pid, signo);
    dt_groupsignal_free(&others);
}

/* Signals the first n processes: the ranks, or all. */
static void signal_first(struct dt_generation *g, uint32_t n, int signo)
{
    struct dt_proclist all = { 0 };

    for (uint32_t i = 0; i < n; i++)
        signal_one(g, &all, &g->processes[i], signo);
    dt_proclist_free(&all);
}

void dt_ending_kill(struct dt_generation *g)
{
    g->stopped_at_once = true;
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        if (g->processes[i].alive && !g->processes[i].outlived.si_pid)
            kill(g->processes[i].spawned.pid, SIGKILL);
    }
    dt_sweep_kill(g->host->groups, DT_SPARE_CARETAKERS, NULL, dt_ending_progress, g);
    uv_timer_start(&g->timer, on_kill_over, SWEEP_MS, 0);
    end_outlived(g);
}

void dt_ending_failed(void *arg, const struct dt_msg_spawn_failed *why)
{
    struct dt_generation *g = arg;

    g->failure = dt_xcalloc(1, sizeof *g->failure);
    *g->failure = *why;
    g->failure->what = dt_xstrdup(why->what);
    dt_spawn_close(g->spawn);
    g->spawn = NULL;
    dt_ending_kill(g);
    dt_ending_check(g);
}

void dt_ending_refuse(struct dt_generation *g, enum dt_spawn_step step, int error, const char *what)
{
    const struct dt_msg_spawn_failed why = {
        .generation = g->start.generation,
        .rank = g->start.ranks.v[0],
        .step = (uint8_t)step,
        .error = error,
        .what = (char *)(uintptr_t)what,
    };

    dt_ending_failed(g, &why);
}

/* STOP sends SIGTERM to the group of each rank. A shell dies of it at once, but the program that
 * the shell runs may be saving, together with other ranks. */
static bool is_outlived(const struct dt_generation *g, const struct dt_process *p)
{
    bool asked = p->asked || (g->stop_expected && g->phase == DT_GENERATION_RUNNING);

    return asked && !g->stopped_at_once && dt_groups_has_child(p->spawned.pid);
}

static void end_process(struct dt_generation *g, uint32_t i, const siginfo_t *info)
{
    g->processes[i].alive = false;
    g->alive--;
    if (g->phase == DT_GENERATION_SPAWNING) {
        if (g->sock && !g->failure)
            dt_deaths_note(g, &g->processes[i], info);
        if (g->spawn)
            dt_spawn_died(g->spawn, i, &g->processes[i].end);
    } else {
        dt_pmixhelper_drain(g->pmix); /* its last MPI_STATE must precede its EXIT */
        dt_deaths_note(g, &g->processes[i], info);
        dt_deaths_report(g);
    }
    dt_ending_check(g);
}

/* Ends the ranks whose processes have all ended by now. */
static void end_outlived(struct dt_generation *g)
{
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        struct dt_process *p = &g->processes[i];

        if (p->alive && p->outlived.si_pid && !is_outlived(g, p))
            end_process(g, i, &p->outlived);
    }
}

void dt_generation_died(struct dt_generation *g, const siginfo_t *info)
{
    uint32_t i = 0;

    if (dt_pmixhelper_died(g->pmix, info))
        return;
    dt_groupsignal_orphans(&g->spared, SIGTERM);
    while (i < g->config.numbers.n &&
           !(g->processes[i].alive && g->processes[i].spawned.pid == info->si_pid))
        i++;
    if (i == g->config.numbers.n)
        end_outlived(g); /* a descendant of a rank, which the agent inherited */
    else if (is_outlived(g, &g->processes[i]))
        g->processes[i].outlived = *info;
    else
        end_process(g, i, info);
}

static void on_grace_over(uv_timer_t *timer)
{
    dt_ending_kill(timer->data);
}

/* Asks about the process that called dt_init: it may have died while it was dumping, and need not
 * be the process that the agent started. */
static bool is_dumping(const struct dt_generation *g, uint32_t index)
{
    struct dt_rank_state rank;

    if (!g->sock || index >= g->start.ranks.n)
        return false;
    rank = dt_ranksock_state(g->sock, index);
    return rank.dumping && (kill(rank.pid, 0) == 0 || errno != ESRCH);
}

/* Sends SIGTERM to every process that is not writing its dump: any thread could handle the signal
 * and end the writing thread. Returns whether all processes have been sent it. */
static bool ask_to_end(struct dt_generation *g)
{
    struct dt_proclist all = { 0 };
    bool asked = true;

    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        struct dt_process *p = &g->processes[i];

        if (!p->alive || p->asked)
            continue;
        p->asked = !is_dumping(g, i);
        asked &= p->asked;
        if (p->asked)
            signal_one(g, &all, p, SIGTERM);
    }
    dt_proclist_free(&all);
    return asked;
}

static void on_dump_round(uv_timer_t *timer)
{
    struct dt_generation *g = timer->data;
    uint64_t now = dt_now_ns();
    uint64_t left_ms = now < g->grace_ends_ns ? (g->grace_ends_ns - now) / 1000000 : 0;

    if (ask_to_end(g) || left_ms < DUMP_ROUND_MS)
        uv_timer_start(timer, on_grace_over, left_ms, 0);
    else
        uv_timer_start(timer, on_dump_round, DUMP_ROUND_MS, 0);
}

static void set_grace_ends(struct dt_generation *g, uint64_t ends_ns, uint64_t leave_by_ns)
{
    g->grace_ends_ns = ends_ns;
    g->leave_by_ns = leave_by_ns;
    if (g->sock)
        dt_ranksock_leave_by(g->sock, leave_by_ns);
}

/* A rank that is stuck leaves in the last quarter of the grace, so that it can still say why. */
static void set_grace(struct dt_generation *g, uint64_t grace_ns)
{
    uint64_t ends_ns = dt_now_ns() + grace_ns;

    if (!g->grace_ends_ns || ends_ns < g->grace_ends_ns)
        set_grace_ends(g, ends_ns, ends_ns - grace_ns / 4);
}

static bool has_grace(const struct dt_generation *g)
{
    return g->grace_ends_ns && !g->stopped_at_once && g->phase == DT_GENERATION_RUNNING;
}

/* Ranks that are stopped for Ctrl-Z cannot save, so their grace does not run. */
static void hold_grace(struct dt_generation *g)
{
    if (!g->held_ns)
        g->held_ns = dt_now_ns();
    if (has_grace(g))
        uv_timer_stop(&g->timer);
}

static void continue_grace(struct dt_generation *g)
{
    uint64_t ns = g->held_ns ? dt_now_ns() - g->held_ns : 0;

    g->held_ns = 0;
    if (!ns || !has_grace(g))
        return;
    set_grace_ends(g, g->grace_ends_ns + ns, g->leave_by_ns + ns);
    on_dump_round(&g->timer);
}

/* A stopped process would handle a signal only after it continues. */
static void continue_all(struct dt_generation *g)
{
    signal_first(g, g->config.numbers.n, SIGCONT);
    continue_grace(g);
}

/* SIGUSR1 and SIGUSR2 are meant for ranks. They would kill auxiliaries, which run a framework's
 * code. */
void dt_generation_signal(struct dt_generation *g, int signo)
{
    bool user_defined = signo == SIGUSR1 || signo == SIGUSR2;

    signal_first(g, user_defined ? g->start.ranks.n : g->config.numbers.n, signo);
    if (signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT)
        continue_all(g);
    if (signo == SIGSTOP)
        hold_grace(g);
    if (signo != SIGCONT)
        return;
    continue_grace(g);
    if (g->sock)
        dt_ranksock_reset_waits(g->sock);
}

/* If the launcher first restarts the job and is then told to end it, it sends STOP twice. The
 * second one does not interrupt ranks that are saving. */
void dt_ending_grace(struct dt_generation *g, uint32_t grace_ms, bool had_term)
{
    continue_all(g);
    set_grace(g, grace_ms * 1000000ull);
    for (uint32_t i = 0; i < g->config.numbers.n; i++)
        g->processes[i].asked |= had_term;
    on_dump_round(&g->timer);
}
