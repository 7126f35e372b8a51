#include "launcher/agent/sweep/groupsignal.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/sweep/procstatus.h"
#include "launcher/base/mem.h"

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

/* Returns the program whose worker the process is, or NULL. */
static const struct dt_proclist_process *
program_of(const struct dt_proclist *all, const struct dt_proclist_process *worker, int signo)
{
    const struct dt_proclist_process *p = worker, *program = NULL;
    char executable[PATH_MAX], other[PATH_MAX];

    read_executable(executable, worker->pid);
    if (!*executable || is_shell(executable))
        return NULL;
    /* A reused pid could close a cycle, which the bound breaks. */
    for (size_t hops = 0; hops < all->n && p->pid != worker->stat.group; hops++) {
        p = dt_proclist_find(all, p->stat.parent);
        if (!p || p->stat.group != worker->stat.group)
            break;
        read_executable(other, p->pid);
        if (strcmp(other, executable) == 0 && handles(p->pid, signo))
            program = p;
    }
    return program;
}

/* Since the list was read, the process may have ended, and its id may be another's by now. */
static bool is_living(const struct dt_proclist_process *p)
{
    struct dt_procstat now;

    return dt_procstat_read(&now, p->pid) && now.started == p->stat.started && now.living;
}

static void signal_process(const struct dt_proclist_process *p, int signo)
{
    if (is_living(p))
        kill(p->pid, signo);
}

static void spare(struct dt_groupsignal_workers *spared, const struct dt_proclist_process *worker,
                  const struct dt_proclist_process *program)
{
    spared->v = dt_xrealloc(spared->v, spared->n + 1, sizeof *spared->v);
    spared->v[spared->n++] = (struct dt_groupsignal_worker){ *worker, *program };
}

bool dt_groupsignal_send(const struct dt_proclist *all, pid_t group, int signo,
                         struct dt_groupsignal_workers *spared)
{
    struct dt_proclist others = { 0 };
    size_t before = spared->n;

    for (size_t i = 0; i < all->n; i++) {
        const struct dt_proclist_process *p = &all->v[i], *program;

        if (p->stat.group != group)
            continue;
        program = p->pid == group ? NULL : program_of(all, p, signo);
        if (program)
            spare(spared, p, program);
        else
            dt_proclist_add(&others, p);
    }
    /* Without workers, not even a process that has just been forked is left out. */
    if (spared->n == before) {
        dt_proclist_free(&others);
        return kill(-group, signo) == 0;
    }
    for (size_t i = 0; i < others.n; i++)
        signal_process(&others.v[i], signo);
    dt_proclist_free(&others);
    return true;
}

void dt_groupsignal_orphans(struct dt_groupsignal_workers *spared, int signo)
{
    size_t kept = 0;

    for (size_t i = 0; i < spared->n; i++) {
        if (is_living(&spared->v[i].program))
            spared->v[kept++] = spared->v[i];
        else
            signal_process(&spared->v[i].worker, signo);
    }
    spared->n = kept;
}

void dt_groupsignal_free(struct dt_groupsignal_workers *spared)
{
    free(spared->v);
    *spared = (struct dt_groupsignal_workers){ 0 };
}
