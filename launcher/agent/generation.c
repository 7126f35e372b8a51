#include "launcher/agent/generation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/deaths.h"
#include "launcher/agent/ending.h"
#include "launcher/agent/generationstate.h"
#include "launcher/agent/horovodserve.h"
#include "launcher/agent/mpirequests.h"
#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/agent/ranks/cgroup.h"
#include "launcher/agent/resources.h"
#include "launcher/agent/sweep/leftovers.h"
#include "launcher/agent/sweep/look.h"
#include "launcher/agent/sweep/procstat.h"
#include "launcher/agent/unservedwarn.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/uvloop.h"
#include "launcher/place/gpu.h"

enum {
    CLEAR_ROUND_MS = 10,
    ORPHANS_MS = 500,         /* how long the processes of dead agents of any job may take to end */
    LEFTOVERS_MS = 10 * 1000, /* how long killed ones of earlier generations may take */
};

/* Streams are read only from now on, because the output of a failed spawn is not a rank's output.
 */
static void take_streams(struct dt_generation *g)
{
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        struct dt_spawned *p = &g->processes[i].spawned;

        if (p->out >= 0)
            dt_relay_add(g->relay, i, STDOUT_FILENO, p->out);
        if (p->err >= 0)
            dt_relay_add(g->relay, i, STDERR_FILENO, p->err);
        p->out = p->err = -1;
    }
}

static void set_running(struct dt_generation *g)
{
    g->phase = DT_GENERATION_RUNNING;
    dt_spawn_close(g->spawn);
    g->spawn = NULL;
    take_streams(g);
}

static void on_ready(void *arg)
{
    struct dt_generation *g = arg;

    if (!dt_horovodserve_listen(g)) {
        dt_ending_refuse(g, DT_SPAWN_SYSTEM, errno, "a port for Horovod's rendezvous");
        return;
    }
    g->all_wait = true;
    dt_mpirequests_maybe_ready(g);
}

static const char *device_of(const struct dt_generation *g, uint32_t index)
{
    return index < g->start.ranks.n ? dt_gpu_of(&g->config.devices, index) : "";
}

static void on_running(void *arg)
{
    struct dt_generation *g = arg;
    uint32_t n = g->config.numbers.n;
    struct dt_msg_started_rank *ranks = dt_xcalloc(n, sizeof *ranks);
    struct dt_msg_started m = { g->start.generation, { ranks, n } };

    for (uint32_t i = 0; i < n; i++) {
        ranks[i].rank = g->config.numbers.v[i];
        ranks[i].pid = (uint32_t)g->processes[i].spawned.pid;
        ranks[i].device = (char *)(uintptr_t)device_of(g, i);
    }
    dt_channel_send(g->host->channel, DT_MSG_STARTED, &m);
    free(ranks);
    set_running(g);
    dt_injector_running(g->faults);
    dt_unservedwarn_begin(g);
    dt_deaths_report(g);
    dt_ending_check(g);
}

static void on_trigger(void *arg, uint32_t local_rank, const struct dt_inject *fault,
                       const char *text)
{
    struct dt_msg_triggered m = { (char *)(uintptr_t)text };
    struct dt_generation *g = arg;
    struct dt_process *p = &g->processes[local_rank];

    if (dt_inject_takes_all_ranks(fault))
        g->host->vanish(g->host->arg);
    if (!p->alive)
        return;
    dt_channel_send(g->host->channel, DT_MSG_TRIGGERED, &m);
    p->injected |= fault->kind != DT_INJECT_STOP;
    if (fault->kind != DT_INJECT_EXIT)
        kill(p->spawned.pid, fault->kind == DT_INJECT_KILL ? SIGKILL : SIGSTOP);
}

static void on_rank_message(void *arg, uint8_t type, const void *msg)
{
    const struct dt_generation *g = arg;

    dt_channel_send(g->host->channel, type, msg);
}

static void on_step(void *arg, uint32_t local_rank, int64_t step)
{
    struct dt_generation *g = arg;

    dt_injector_step(g->faults, local_rank, step);
}

static bool has_room(void *arg)
{
    const struct dt_generation *g = arg;

    return dt_channel_has_room(g->host->channel);
}

/* glibc starts threads with clone3, and with clone instead only if clone3 fails with ENOSYS. The
 * agent's glibc may be newer than all others of a container, and so the first to meet its filter.
 */
static void refuse_without_thread(struct dt_generation *g, int error)
{
    if (error == EPERM)
        dt_ending_refuse(
            g, DT_SPAWN_SYSTEM, 0,
            "a thread for standard input: does a filter of system calls (seccomp) there "
            "forbid clone3, as that of Docker before 20.10.10 does?");
    else
        dt_ending_refuse(g, DT_SPAWN_SYSTEM, error, "a thread for standard input");
}

static void spawn(struct dt_generation *g)
{
    static const struct dt_spawn_events events = { .forking = dt_ending_progress,
                                                   .needs_pmix = dt_mpirequests_needs_pmix,
                                                   .uses_horovod = dt_horovodserve_uses,
                                                   .ready = on_ready,
                                                   .running = on_running,
                                                   .failed = dt_ending_failed };
    struct dt_spawned *processes = dt_xcalloc(g->config.numbers.n, sizeof *processes);
    struct dt_msg_spawn_failed why;
    int rc, error;

    g->host->groups->n = 0; /* those of the previous generation have ended */
    rc = dt_spawn_open(&g->spawn, g->host->loop, &g->config, processes, &events, g, &why);
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        g->processes[i].spawned = processes[i];
        g->processes[i].alive = processes[i].pid != 0;
        g->alive += g->processes[i].alive;
        if (processes[i].pid)
            dt_groups_add(g->host->groups, processes[i].pid);
        if (processes[i].in >= 0)
            dt_stdinfeed_add(g->in, processes[i].in);
    }
    error = dt_stdinfeed_begin(g->in);
    free(processes);
    if (rc < 0)
        dt_ending_failed(g, &why);
    else if (error)
        refuse_without_thread(g, error);
}

static void refuse_for_leftovers(struct dt_generation *g, size_t n, const struct dt_leftover *left)
{
    bool one = n == 1;
    const char *how = one ? "waits inside the kernel" : "wait inside the kernel";
    char *what = dt_xasprintf("%zu process%s from before the restart %s (pid %d%s)", n,
                              one ? "" : "es", left->error ? "cannot be killed" : how,
                              (int)left->pid, one ? "" : " and others");

    dt_ending_refuse(g, DT_SPAWN_LEFTOVER, left->error, what);
    free(what);
}

/* What was found when looking for leftovers. */
struct leftovers {
    size_t n;
    struct dt_leftover example; /* one of them */
};

/* Runs in a child process. */
static size_t kill_leftovers(const void *what, pid_t agent, void *answer)
{
    const struct dt_msg_start *start = what;
    struct leftovers left = { 0 };

    (void)agent;
    left.n = dt_leftovers_kill(start->job_id, start->generation, &left.example);
    memcpy(answer, &left, sizeof left);
    return sizeof left;
}

static void refuse_without_look(struct dt_generation *g, int error)
{
    dt_ending_refuse(g, DT_SPAWN_SYSTEM, error,
                     "a process that looks for those from before the restart");
}

static void clear(struct dt_generation *g);

static void on_clear_round(uv_timer_t *timer)
{
    clear(timer->data);
}

/* Spawns once the leftovers of this job and the processes of dead agents (orphans) are gone. */
static void on_cleared(void *arg, const void *answer, size_t n)
{
    struct dt_generation *g = arg;
    bool orphans = dt_cgroup_end_orphans() > 0;
    uint64_t now = dt_now_ns();
    struct leftovers left;

    g->look = NULL;
    if (g->phase != DT_GENERATION_SPAWNING)
        return;
    if (n != sizeof left) {
        refuse_without_look(g, ECHILD);
        return;
    }
    memcpy(&left, answer, n);
    if (!left.example.error &&
        ((orphans && now < g->orphans_end_ns) || (left.n && now < g->sweep_ends_ns)))
        uv_timer_start(&g->timer, on_clear_round, CLEAR_ROUND_MS, 0);
    else if (left.n)
        refuse_for_leftovers(g, left.n, &left.example);
    else
        spawn(g);
}

/* If the previous generation's agent was killed, processes that its ranks started may still run, as
 * may processes in the cgroups of dead agents. */
static void clear(struct dt_generation *g)
{
    static const struct leftovers none;

    if (g->start.generation == 1) {
        on_cleared(g, &none, sizeof none);
        return;
    }
    g->look = dt_look_begin(g->host->loop,
                            &(struct dt_look_at){ kill_leftovers, &g->start, on_cleared, g });
    if (!g->look)
        refuse_without_look(g, errno);
}

/* Lists the ranks first, then the auxiliaries. */
static void list_processes(struct dt_generation *g)
{
    const struct dt_u32s *ranks = &g->start.ranks, *auxiliaries = &g->start.auxiliaries;
    struct dt_u32s *numbers = &g->config.numbers;

    numbers->n = ranks->n + auxiliaries->n;
    numbers->v = dt_xcalloc(numbers->n, sizeof *numbers->v);
    memcpy(numbers->v, ranks->v, ranks->n * sizeof *numbers->v);
    if (auxiliaries->n)
        memcpy(numbers->v + ranks->n, auxiliaries->v, auxiliaries->n * sizeof *numbers->v);
    g->processes = dt_xcalloc(numbers->n, sizeof *g->processes);
    for (uint32_t i = 0; i < numbers->n; i++)
        g->processes[i].spawned = (struct dt_spawned){ .in = -1, .out = -1, .err = -1 };
}

struct dt_generation *dt_generation_create(struct dt_agent_host *host, struct dt_msg_start *start)
{
    static const struct dt_injector_events fault_events = { on_trigger };
    static const struct dt_ranksock_events rank_events = { on_rank_message, on_step, has_room };
    struct dt_generation *g = dt_xcalloc(1, sizeof *g);
    struct dt_error err = { 0 };
    struct dt_lack lack;

    g->host = host;
    g->config.cgroup = -1;
    g->start = *start;
    *start = (struct dt_msg_start){ 0 };
    uv_timer_init(host->loop, &g->timer);
    g->timer.data = g;
    list_processes(g);
    dt_resources_devices(g);
    dt_resources_cpus(g);
    dt_oom_forget(&host->oom);
    g->relay = dt_relay_create(host->loop, host->channel, &g->config.numbers, dt_ending_flushed, g);
    if (!dt_resources_suffice(g, &lack)) {
        dt_ending_refuse(g, lack.step, lack.error, lack.what);
        free(lack.what);
        return g;
    }
    g->sock = dt_ranksock_create(host->loop, &g->start, &rank_events, g, &err);
    if (!g->sock) {
        dt_ending_refuse(g, DT_SPAWN_SYSTEM, 0, err.text);
        return g;
    }
    g->pmi = dt_pmisock_create(host->loop, &g->start, &dt_mpirequests_pmi_events, g);
    if (!g->pmi) {
        dt_ending_refuse(g, DT_SPAWN_SYSTEM, errno, "sockets for PMI-1");
        return g;
    }
    g->faults = dt_injector_create(host->loop, &g->start, g->sock, &fault_events, g);
    g->in = dt_stdinfeed_create(host->loop, host->channel, g->start.generation, g->start.ranks.n);
    g->config.start = &g->start;
    g->config.sock = g->sock;
    g->config.pmi = g->pmi;
    g->config.cgroup = dt_cgroup_make(host->cgroup, g->start.job_id);
    g->config.files_limit = host->files_limit;
    g->config.file_size_limit = host->file_size_limit;
    g->orphans_end_ns = dt_now_ns() + ORPHANS_MS * 1000000ull;
    g->sweep_ends_ns = dt_now_ns() + LEFTOVERS_MS * 1000000ull;
    clear(g);
    return g;
}

void dt_generation_destroy(struct dt_generation *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        struct dt_spawned *p = &g->processes[i].spawned;

        if (p->out >= 0)
            close(p->out);
        if (p->err >= 0)
            close(p->err);
    }
    dt_look_end(g->look);
    dt_spawn_close(g->spawn);
    dt_injector_destroy(g->faults);
    dt_stdinfeed_destroy(g->in);
    dt_relay_destroy(g->relay);
    dt_ranksock_destroy(g->sock);
    dt_pmisock_destroy(g->pmi);
    dt_mpirequests_free(g);
    dt_horovodserve_close(g);
    dt_unservedwarn_end(g);
    if (g->failure)
        free(g->failure->what);
    free(g->failure);
    free(g->processes);
    dt_groupsignal_free(&g->spared);
    free(g->config.numbers.v);
    if (g->config.cgroup >= 0)
        close(g->config.cgroup);
    dt_strs_free(&g->config.devices);
    free(g->config.cpus.v);
    dt_msg_free(DT_MSG_START, (union dt_msg *)&g->start);
    uv_close((uv_handle_t *)&g->timer, dt_uvloop_free_data);
}

bool dt_generation_over(const struct dt_generation *g)
{
    return g->phase == DT_GENERATION_OVER;
}

bool dt_generation_has_unreported_deaths(const struct dt_generation *g)
{
    return g->phase != DT_GENERATION_OVER && dt_deaths_owed(g);
}

void dt_generation_leaving(const struct dt_generation *g, struct dt_u32s *list)
{
    bool *inside = g->sock ? dt_ranksock_inside(g->sock) : NULL;

    *list = (struct dt_u32s){ dt_xcalloc(g->start.ranks.n, sizeof *list->v), 0 };
    for (uint32_t i = 0; inside && i < g->start.ranks.n; i++) {
        struct dt_rank_state state = dt_ranksock_state(g->sock, i);

        if (g->processes[i].alive && state.linked && (state.peer_lost || inside[i]))
            list->v[list->n++] = g->start.ranks.v[i];
    }
    free(inside);
}

void dt_generation_table(struct dt_generation *g, const struct dt_msg_table *m)
{
    if (g->sock)
        dt_ranksock_table(g->sock, m);
}

void dt_generation_expect_stop(struct dt_generation *g)
{
    g->stop_expected = true;
}

void dt_generation_stop(struct dt_generation *g, uint32_t grace_ms, bool had_term)
{
    if (g->phase > DT_GENERATION_RUNNING || g->failure || g->stopped_at_once)
        return;
    g->stopping = true;
    if (g->phase == DT_GENERATION_SPAWNING) { /* ranks that have just begun have nothing to save */
        set_running(g);
        grace_ms = 0;
    }
    dt_deaths_report(g);
    if (grace_ms == 0)
        dt_ending_kill(g);
    else
        dt_ending_grace(g, grace_ms, had_term);
    dt_ending_check(g);
}

void dt_generation_go(struct dt_generation *g, const struct dt_msg_go *m)
{
    struct dt_msg_go go = *m;

    go.mpi_env = g->mpi_env;
    if (!g->spawn || m->generation != g->start.generation)
        return;
    dt_horovodserve_go(g, m);
    dt_spawn_go(g->spawn, &go);
}

void dt_generation_abort(struct dt_generation *g, const struct dt_msg_abort *m)
{
    if (!g->sock || m->generation != g->start.generation)
        return;
    dt_ranksock_ended(g->sock, m->rank, m->ending);
    dt_ranksock_abort(g->sock, m->comm, m->code, m->rank, m->text);
}

void dt_generation_credit(struct dt_generation *g, const struct dt_msg_credit *m)
{
    dt_relay_credit(g->relay, m->rank, m->fd, m->bytes);
}

bool dt_generation_stdin(struct dt_generation *g, const struct dt_msg_stdin *m)
{
    return m->generation != g->start.generation || !g->in ||
           dt_stdinfeed_put(g->in, m->data.p, m->data.n);
}

void dt_generation_stdin_eof(struct dt_generation *g, const struct dt_msg_stdin_eof *m)
{
    if (m->generation == g->start.generation && g->in)
        dt_stdinfeed_eof(g->in);
}

static void fill_step(struct dt_msg_step *step, struct dt_rank_state state)
{
    struct dt_procstat stat;

    step->step = state.step;
    step->stopped = state.linked && dt_procstat_read(&stat, state.pid) && stat.stopped;
}

void dt_generation_pong(struct dt_generation *g, const struct dt_msg_list *asked,
                        struct dt_msg_pong *pong)
{
    struct dt_msg_step *v = dt_xcalloc(g->start.ranks.n, sizeof *v);

    for (uint32_t i = 0; i < g->start.ranks.n; i++) {
        v[i].rank = g->start.ranks.v[i];
        v[i].step = -1;
        if (g->sock)
            fill_step(&v[i], dt_ranksock_state(g->sock, i));
    }
    pong->steps = (struct dt_msg_list){ v, g->start.ranks.n };
    pong->generation = g->start.generation;
    if (g->sock)
        dt_ranksock_look(g->sock, asked, pong);
}

void dt_generation_free_pong(struct dt_msg_pong *pong)
{
    free(pong->steps.v);
    dt_callwatch_free_report(&pong->comms);
}

void dt_generation_room(struct dt_generation *g)
{
    dt_relay_room(g->relay);
    if (g->sock)
        dt_ranksock_room(g->sock);
}
