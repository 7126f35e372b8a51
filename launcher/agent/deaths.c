#include "launcher/agent/deaths.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "launcher/agent/generationstate.h"
#include "launcher/agent/sweep/procstat.h"
#include "launcher/base/clock.h"
#include "launcher/base/error.h"
#include "launcher/base/granted/limits.h"
#include "runtime/wire/hostshm.h"

/* Returns what a rank had reported before it died. Auxiliaries report nothing. */
static struct dt_rank_state last_state(struct dt_generation *g, uint32_t index)
{
    if (index >= g->start.ranks.n)
        return (struct dt_rank_state){ .step = -1 };
    dt_ranksock_drain(g->sock, index);
    return dt_ranksock_state(g->sock, index);
}

/* If the kernel kills a process that a rank has started, the rank exits by itself, as a wrapper
 * does. But it may also exit because the kernel kills another rank, whose death takes longer to be
 * seen. */
static bool lacked_memory(struct dt_oom *oom, const struct dt_msg_exit *end)
{
    if (end->flags & (DT_EXITED_STOPPED | DT_EXITED_INJECTED))
        return false;
    if (end->signo == SIGKILL)
        return dt_oom_killed(oom, (pid_t)end->pid);
    return end->code > 0 && !(end->flags & DT_EXITED_PEER_LOST) && dt_oom_killed_any(oom);
}

/* The limit of a container may be far below the memory of its machine. */
static void tell_memory_limit(struct dt_generation *g)
{
    struct dt_limits limits;

    if (g->host->told_memory_limit)
        return;
    dt_limits_read(&limits, "");
    if (!limits.memory)
        return;
    g->host->told_memory_limit = true;
    dt_generation_say(g, "memory ran out; the control group of the ranks allows %" PRIu64 " MiB",
                      limits.memory >> 20);
}

/* The signal that killed the process, or a child of it, as far as its exit code says so. */
static int killed_by(const struct dt_msg_exit *end)
{
    return end->signo ? end->signo : end->code - DT_EXIT_SIGNAL;
}

/* Returns whether the kernel may have killed the process, or a child of it, because it had used the
 * CPU time that it may. The rest of a second may be missing from two times. */
static bool may_lack_time(const struct dt_msg_exit *end, uint64_t used_s, rlim_t limit)
{
    int signo = killed_by(end);

    if (end->flags & (DT_EXITED_STOPPED | DT_EXITED_INJECTED | DT_EXITED_OOM))
        return false;
    return (signo == SIGKILL || signo == SIGXCPU) && used_s + 2 >= limit;
}

/* Login nodes of clusters often have such a limit. */
static void tell_time_limit(struct dt_generation *g, const struct dt_msg_exit *end)
{
    struct rlimit limit;

    if (g->host->told_time_limit || getrlimit(RLIMIT_CPU, &limit) < 0 ||
        limit.rlim_cur == RLIM_INFINITY ||
        !may_lack_time(end, g->host->reaped_cpu_s, limit.rlim_cur))
        return;
    g->host->told_time_limit = true;
    dt_generation_say(g, "a process that has used %ju s of CPU time is killed here (ulimit -t)",
                      (uintmax_t)limit.rlim_cur);
}

/* Containers often have 64 MiB there. When a process writes to a file there that it has mapped, and
 * there is no room left, the kernel kills it. Its death may have freed some. */
static void tell_shm_size(struct dt_generation *g, const struct dt_msg_exit *end)
{
    static const uint64_t little = UINT64_C(64) << 20;
    struct statvfs fs;
    uint64_t size, left;

    if (g->host->told_shm_size || killed_by(end) != SIGBUS || statvfs("/dev/shm", &fs) < 0)
        return;
    size = (uint64_t)fs.f_blocks * fs.f_frsize;
    left = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (size == 0 || (size > little && left > size / 16)) /* 0: as much as the machine has */
        return;
    g->host->told_shm_size = true;
    dt_generation_say(g,
                      "/dev/shm has %" PRIu64 " MiB, of which %" PRIu64 " are free: a process that "
                      "finds no room there is killed by SIGBUS; --shm-size gives a container more",
                      size >> 20, left >> 20);
}

void dt_deaths_note(struct dt_generation *g, struct dt_process *p, const siginfo_t *info)
{
    uint32_t index = (uint32_t)(p - g->processes);
    struct dt_rank_state state = last_state(g, index);
    bool by_signal = info->si_code != CLD_EXITED && !p->aborted;
    bool peer_lost = state.peer_lost || (state.gpu_lost && info->si_status != 0);

    p->end = (struct dt_msg_exit){
        .generation = g->start.generation,
        .rank = g->config.numbers.v[index],
        .pid = (uint32_t)p->spawned.pid,
        .code = by_signal    ? -1
                : p->aborted ? p->aborted
                             : info->si_status,
        .signo = by_signal ? info->si_status : 0,
        .time_ns = p->aborted ? p->aborted_ns : dt_now_ns(),
        .step = state.step,
        .flags =
            (state.linked ? DT_EXITED_LINKED : 0) | (state.finalized ? DT_EXITED_FINALIZED : 0) |
            (peer_lost ? DT_EXITED_PEER_LOST : 0) | (state.failed ? DT_EXITED_COMM_FAILED : 0) |
            (info->si_code == CLD_DUMPED ? DT_EXITED_CORE : 0) |
            (g->stopping ? DT_EXITED_STOPPED : 0) | (p->injected ? DT_EXITED_INJECTED : 0),
    };
    if (lacked_memory(&g->host->oom, &p->end)) {
        p->end.flags |= DT_EXITED_OOM;
        tell_memory_limit(g);
    }
    tell_time_limit(g, &p->end);
    tell_shm_size(g, &p->end);
}

/* If a linked rank ends without dt_finalize, its peers would wait for it. */
static bool leaves_peers_waiting(const struct dt_msg_exit *end)
{
    return (end->flags & DT_EXITED_LINKED) &&
           (end->code != 0 || !(end->flags & DT_EXITED_FINALIZED));
}

void dt_deaths_report(struct dt_generation *g)
{
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        struct dt_process *p = &g->processes[i];

        if (p->alive || p->reported)
            continue;
        p->reported = true;
        dt_channel_send(g->host->channel, DT_MSG_EXIT, &p->end);
        if (!leaves_peers_waiting(&p->end))
            continue;
        dt_ranksock_ended(g->sock, p->end.rank, dt_hostshm_ending_of(p->end.code, p->end.signo));
        dt_ranksock_abort(g->sock, 0, DT_HOSTSHM_PEER_DIED, p->end.rank, "");
    }
}

static bool is_dying(pid_t pid)
{
    struct dt_procstat stat;

    return dt_procstat_read(&stat, pid) && stat.dying;
}

bool dt_deaths_owed(const struct dt_generation *g)
{
    for (uint32_t i = 0; i < g->config.numbers.n; i++) {
        const struct dt_process *p = &g->processes[i];

        if (p->alive ? is_dying(p->spawned.pid) : !p->reported)
            return true;
    }
    return false;
}
