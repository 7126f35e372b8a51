#include "launcher/agent/sweep/sweep.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/sweep/procfs.h"
#include "launcher/agent/sweep/proclist.h"
#include "launcher/agent/sweep/procstat.h"
#include "launcher/agent/sweep/procstatus.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/pidfd.h"

enum {
    ROUND_MS = 5,
    REFUSED_MS = 1000, /* processes of another user may be about to end by themselves */
};

/* Since the list was read, the process may have ended, and its id may be another's by now. So this
 * opens a pidfd, which never passes to another process, and checks that it is the listed one's.
 * Returns why it cannot be killed, or 0. */
static int kill_process(const struct dt_proclist_process *p)
{
    struct dt_procstat now;
    int fd = dt_pidfd_open(p->pid);
    bool same = dt_procstat_read(&now, p->pid) && now.started == p->stat.started;
    int error = 0;

    /* There is no pidfd before Linux 5.3, and where a container refuses them. */
    if (same && (fd >= 0 ? dt_pidfd_kill(fd) : kill(p->pid, SIGKILL)) < 0 && errno == EPERM)
        error = EPERM;
    if (fd >= 0)
        close(fd);
    return error;
}

/* Without children there are no descendants, because orphans become children of this process. The
 * kernel answers this at once. Reading /proc takes long if many agents share a machine, and proves
 * nothing, because processes come and go meanwhile. */
static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void dt_groups_add(struct dt_groups *groups, pid_t group)
{
    if (groups->n < DT_SWEEP_GROUPS)
        groups->v[groups->n++] = group;
}

void dt_groups_abandon(struct dt_groups *groups, pid_t pid)
{
    struct dt_procstat stat;

    if (groups->nabandoned < DT_SWEEP_ABANDONED && dt_procstat_read(&stat, pid))
        groups->abandoned[groups->nabandoned++] = (struct dt_abandoned){ pid, stat.started };
}

static bool is_abandoned(const struct dt_groups *groups, const struct dt_proclist_process *p)
{
    for (uint32_t i = 0; i < groups->nabandoned; i++)
        if (groups->abandoned[i].pid == p->pid && groups->abandoned[i].started == p->stat.started)
            return true;
    return false;
}

/* Returns whether a child has ended and is not reaped. Until it is, has_children() says yes. */
static bool has_zombie(void)
{
    siginfo_t info = { 0 };

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

bool dt_groups_has_child(pid_t group)
{
    siginfo_t info;

    return waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* A group that has no child of this process may belong to others by now, because ids are reused. A
 * zombie counts, so that the caller reaps it and calls again. */
static size_t kill_groups(const struct dt_groups *groups, struct dt_leftover *example)
{
    size_t living = 0;

    for (uint32_t i = 0; i < groups->n; i++) {
        if (!dt_groups_has_child(groups->v[i]) || kill(-groups->v[i], SIGKILL) < 0)
            continue;
        living++;
        if (example)
            *example = (struct dt_leftover){ .pid = groups->v[i] };
    }
    return living ? living : has_zombie();
}

static bool is_shm_manager(const char *status)
{
    static const char name[] = "Name:\ttorch_shm_manag\n"; /* the kernel keeps 15 characters */

    return strncmp(status, name, strlen(name)) == 0;
}

static bool is_spared(pid_t pid, enum dt_spared spared)
{
    struct dt_strbuf status = dt_procstatus_read(pid);
    bool is = is_shm_manager(dt_strbuf_text(&status)) ||
              (spared == DT_SPARE_CARETAKERS && dt_procstatus_has(&status, "SigIgn", SIGINT) &&
               dt_procstatus_has(&status, "SigIgn", SIGTERM));

    dt_strbuf_free(&status);
    return is;
}

size_t dt_sweep_kill(const struct dt_groups *groups, enum dt_spared spared,
                     struct dt_leftover *example, void (*alive)(void *arg), void *arg)
{
    struct dt_proclist all = { 0 };
    pid_t self = getpid();
    size_t living = 0;

    if (!has_children())
        return 0;
    dt_proclist_read(&all, alive, arg);
    if (all.n == 0)
        living = kill_groups(groups, example);
    for (size_t i = 0; i < all.n; i++) {
        const struct dt_proclist_process *p = &all.v[i];
        int error;

        if (!p->stat.living || !dt_proclist_branch(&all, p, self) || is_abandoned(groups, p))
            continue;
        error = spared != DT_SPARE_NONE && is_spared(p->pid, spared) ? 0 : kill_process(p);
        if (example && (living == 0 || !error))
            *example = (struct dt_leftover){ p->pid, error };
        living++;
    }
    dt_proclist_free(&all);
    return living;
}

/* Returns whether any children are left. */
static bool reap_children(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

bool dt_sweep_all(const struct dt_groups *groups, int timeout_ms)
{
    const struct timespec round = { .tv_nsec = ROUND_MS * 1000000L };
    uint64_t begin = dt_now_ns(), deadline = begin + (uint64_t)timeout_ms * 1000000;
    uint64_t refused = begin + REFUSED_MS * UINT64_C(1000000);
    struct dt_leftover left = { 0 };
    bool can_find = true;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    while (reap_children() && can_find &&
           dt_now_ns() < (left.error && refused < deadline ? refused : deadline)) {
        can_find = dt_sweep_kill(groups, DT_SPARE_NONE, &left, NULL, NULL) || dt_procfs_is_ours();
        /* A child's death wakes this; the death of a deeper descendant becomes visible only in the
         * next round. */
        sigtimedwait(&child, NULL, &round);
    }
    return can_find || !has_children();
}
