#include "launcher/agent/sweep/groupsignal.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/sweep/procstatus.h"

bool dt_groupsignal_spares(int signo)
{
    return signo == SIGTERM || signo == SIGUSR1 || signo == SIGUSR2;
}

/* Returns an empty path if that cannot be known. */
static void read_executable(char path[PATH_MAX], pid_t pid)
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    n = readlink(link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
}

/* Also if a version or the like follows the name, as in "ksh93", "zsh-5.9" and "bash (deleted)". */
static bool is_shell(const char *executable)
{
    static const char *const shells[] = { "sh",   "ash",  "bash", "bsd-csh", "busybox",
                                          "csh",  "dash", "fish", "ksh",     "lksh",
                                          "mksh", "tcsh", "zsh",  "yash" };
    const char *slash = strrchr(executable, '/');
    const char *name = slash ? slash + 1 : executable;

    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        size_t n = strlen(shells[i]);

        if (strncmp(name, shells[i], n) == 0 && strchr(" -0123456789", name[n]))
            return true;
    }
    return false;
}

static bool handles(pid_t pid, int signo)
{
    struct dt_strbuf status = dt_procstatus_read(pid);
    bool is = dt_procstatus_has(&status, "SigCgt", signo);

    dt_strbuf_free(&status);
    return is;
}

/* Returns the program whose worker the process is, or 0. */
static pid_t program_of(const struct dt_proclist *all, const struct dt_proclist_process *worker,
                        int signo)
{
    const struct dt_proclist_process *p = worker;
    char executable[PATH_MAX], other[PATH_MAX];
    pid_t program = 0;

    read_executable(executable, worker->pid);
    if (!*executable || is_shell(executable))
        return 0;
    /* A reused pid could close a cycle, which the bound breaks. */
    for (size_t hops = 0; hops < all->n && p->pid != worker->stat.group; hops++) {
        p = dt_proclist_find(all, p->stat.parent);
        if (!p || p->stat.group != worker->stat.group)
            break;
        read_executable(other, p->pid);
        if (strcmp(other, executable) == 0 && handles(p->pid, signo))
            program = p->pid;
    }
    return program;
}

/* Since the list was read, the process may have ended, and its id may be another's by now. */
static void signal_process(const struct dt_proclist_process *p, int signo)
{
    struct dt_procstat now;

    if (dt_procstat_read(&now, p->pid) && now.started == p->stat.started)
        kill(p->pid, signo);
}

bool dt_groupsignal_send(const struct dt_proclist *all, pid_t group, int signo, bool *led)
{
    struct dt_proclist others = { 0 };
    size_t workers = 0;

    *led = false;
    for (size_t i = 0; i < all->n; i++) {
        pid_t program;

        if (all->v[i].stat.group != group)
            continue;
        program = all->v[i].pid == group ? 0 : program_of(all, &all->v[i], signo);
        *led |= program == group;
        workers += program != 0;
        if (!program)
            dt_proclist_add(&others, &all->v[i]);
    }
    /* Without workers, not even a process that has just been forked is left out. */
    if (workers == 0) {
        dt_proclist_free(&others);
        return kill(-group, signo) == 0;
    }
    for (size_t i = 0; i < others.n; i++)
        signal_process(&others.v[i], signo);
    dt_proclist_free(&others);
    return true;
}
