#include "launcher/agent/sweep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/agent/clock.h"
#include "launcher/base/mem.h"

enum { ROUND_MS = 5 };

struct process {
    pid_t pid;
    pid_t parent;
    bool living;
};

struct processes {
    struct process *v; /* by pid */
    size_t n;
    size_t cap;
};

/* "PID (NAME) STATE PARENT ...", where NAME may hold anything. */
static bool read_stat(struct process *p, const char *pid)
{
    char path[64];
    char text[512];
    const char *after;
    char state;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    after = strrchr(text, ')');
    if (!after || sscanf(after + 1, " %c %d", &state, &p->parent) != 2)
        return false;
    p->pid = (pid_t)atoi(pid);
    p->living = state != 'Z' && state != 'X';
    return true;
}

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
        if (read_stat(&all->v[all->n], entry->d_name))
            all->n++;
    }
    if (proc)
        closedir(proc);
    if (all->n)
        qsort(all->v, all->n, sizeof *all->v, by_pid);
}

static bool is_below(const struct processes *all, const struct process *p, pid_t top)
{
    /* The list is no snapshot: a reused pid could close a circle, which the bound breaks. */
    for (size_t hops = 0; p && hops < all->n; hops++) {
        struct process key = { .pid = p->parent };

        if (p->parent == top)
            return true;
        p = bsearch(&key, all->v, all->n, sizeof key, by_pid);
    }
    return false;
}

size_t dt_sweep_kill(pid_t *example)
{
    struct processes all = { 0 };
    pid_t self = getpid();
    size_t living = 0;

    read_processes(&all);
    for (size_t i = 0; i < all.n; i++) {
        const struct process *p = &all.v[i];

        if (!p->living || !is_below(&all, p, self))
            continue;
        kill(p->pid, SIGKILL);
        living++;
        if (example)
            *example = p->pid;
    }
    free(all.v);
    return living;
}

void dt_sweep_all(int timeout_ms)
{
    const struct timespec round = { .tv_nsec = ROUND_MS * 1000000L };
    uint64_t deadline = dt_clock_ns() + (uint64_t)timeout_ms * 1000000;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    while (dt_sweep_kill(NULL) && dt_clock_ns() < deadline) {
        /* A child's death wakes us; a deeper one only becomes visible in the next round. */
        sigtimedwait(&child, NULL, &round);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}
