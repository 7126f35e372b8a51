#include "launcher/agent/sweep/sweep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/sweep/procstat.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"

enum { ROUND_MS = 5 };

struct process {
    pid_t pid;
    struct dt_procstat stat;
};

struct processes {
    struct process *v; /* by pid */
    size_t n;
    size_t cap;
};

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a;
    const struct process *y = b;

    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void read_processes(struct processes *all)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    while (proc && (entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (all->n == all->cap) {
            all->cap = all->cap ? 2 * all->cap : 256;
            all->v = dt_xrealloc(all->v, all->cap, sizeof *all->v);
        }
        all->v[all->n].pid = (pid_t)atoi(entry->d_name);
        if (dt_procstat_read(&all->v[all->n].stat, all->v[all->n].pid))
            all->n++;
    }
    if (proc)
        closedir(proc);
    if (all->n)
        qsort(all->v, all->n, sizeof *all->v, by_pid);
}

static bool is_below(const struct processes *all, const struct process *p, pid_t top)
{
    /* The list is not a snapshot: a reused pid could close a cycle, which the bound breaks. */
    for (size_t hops = 0; p && hops < all->n; hops++) {
        struct process key = { .pid = p->stat.parent };

        if (p->stat.parent == top)
            return true;
        p = bsearch(&key, all->v, all->n, sizeof key, by_pid);
    }
    return false;
}

/* Since the list was read, the process may have ended, and its id may be another's by now. So this
 * opens a pidfd, which stays the same process, and checks what it refers to. */
static void kill_process(const struct process *p)
{
    struct dt_procstat now;
    int fd = pidfd_open(p->pid, 0);

    if (fd < 0 && errno == ENOSYS) /* before Linux 5.3 */
        kill(p->pid, SIGKILL);
    if (fd < 0)
        return;
    if (dt_procstat_read(&now, p->pid) && now.started == p->stat.started)
        pidfd_send_signal(fd, SIGKILL, NULL, 0);
    close(fd);
}

/* Without children there are no descendants, because orphans become children of this process. The
 * kernel knows that at once. The list in /proc is long if many agents share a machine, and cannot
 * prove it, because processes come and go while it is read. */
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

static bool is_abandoned(const struct dt_groups *groups, const struct process *p)
{
    for (uint32_t i = 0; i < groups->nabandoned; i++)
        if (groups->abandoned[i].pid == p->pid && groups->abandoned[i].started == p->stat.started)
            return true;
    return false;
}

/* Returns whether a child has ended and was not reaped. */
static bool has_zombie(void)
{
    siginfo_t info = { 0 };

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* A group that has no child of this process may belong to others by now, because ids are reused. */
static size_t kill_groups(const struct dt_groups *groups, pid_t *example)
{
    size_t living = 0;

    for (uint32_t i = 0; i < groups->n; i++) {
        siginfo_t info;

        if (waitid(P_PGID, (id_t)groups->v[i], &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            kill(-groups->v[i], SIGKILL) < 0)
            continue;
        living++;
        if (example)
            *example = groups->v[i];
    }
    return living ? living : has_zombie();
}

size_t dt_sweep_kill(const struct dt_groups *groups, pid_t *example)
{
    struct processes all = { 0 };
    pid_t self = getpid();
    size_t living = 0;

    if (!has_children())
        return 0;
    read_processes(&all);
    if (all.n == 0)
        return kill_groups(groups, example);
    for (size_t i = 0; i < all.n; i++) {
        const struct process *p = &all.v[i];

        if (!p->stat.living || !is_below(&all, p, self) || is_abandoned(groups, p))
            continue;
        kill_process(p);
        living++;
        if (example)
            *example = p->pid;
    }
    free(all.v);
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
    uint64_t deadline = dt_now_ns() + (uint64_t)timeout_ms * 1000000;
    bool found = true;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    while (reap_children() && found && dt_now_ns() < deadline) {
        found = dt_sweep_kill(groups, NULL) || access("/proc/self", F_OK) == 0;
        /* A child's death wakes this; the death of a deeper descendant becomes visible only in the
         * next round. */
        sigtimedwait(&child, NULL, &round);
    }
    return found || !has_children();
}
