#include "launcher/agent/jobsignals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/agent/sweep/procstat.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"

enum { MOMENT_MS = 5000 }; /* longer than the launcher waits for other hosts before it acts */

static const int signos[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

enum { SIGNOS = sizeof signos / sizeof *signos };

struct dt_jobsignals {
    uv_poll_t poll;
    int fd;
    void (*on_signal)(void *arg, int signo);
    void *arg;
    pid_t daemon;                 /* the batch system's, if it started this process; or 0 */
    uint64_t had_ns[SIGNOS];      /* when ranks received it; 0: never */
    uint64_t first_ns[SIGNOS][2]; /* when it last came from the keeper alone, or directly alone */
};

/* The keeper passes signal i on as SIGRTMIN + i. If the keeper passed on the signal itself, and a
 * batch system sent the same one to the worker, one of the two would be lost: the kernel keeps only
 * one pending signal of each number. */
static int passed_as(int i)
{
    return SIGRTMIN + i;
}

void dt_jobsignals_handle(void (*handler)(int signo))
{
    for (int i = 0; i < SIGNOS; i++) {
        signal(signos[i], handler);
        signal(passed_as(i), handler);
    }
}

static volatile pid_t dti_signalled_child;

static void pass_on(int signo)
{
    int error = errno;

    for (int i = 0; i < SIGNOS && dti_signalled_child; i++) {
        if (signos[i] == signo)
            kill(dti_signalled_child, passed_as(i));
    }
    errno = error;
}

void dt_jobsignals_pass_on(pid_t process)
{
    const struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };

    dti_signalled_child = process;
    for (int i = 0; i < SIGNOS && process; i++)
        sigaction(signos[i], &action, NULL);
}

/* Slurm and Grid Engine signal through these daemons. */
static bool is_batch_daemon(pid_t pid)
{
    char path[64], name[32] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    f = pid > 0 ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    if (!fgets(name, sizeof name, f))
        name[0] = '\0';
    fclose(f);
    return strcmp(name, "slurmstepd\n") == 0 || strcmp(name, "sge_shepherd\n") == 0;
}

static pid_t batch_daemon_above(void)
{
    struct dt_procstat stat;
    pid_t pid = getppid();

    while (pid > 1 && !is_batch_daemon(pid))
        pid = dt_procstat_read(&stat, pid) ? stat.parent : 0;
    return pid > 1 ? pid : 0;
}

/* A daemon may end right after it has sent the signal, as slurmstepd does when its batch script
 * dies of the signal. */
static bool is_from_batch_daemon(const struct dt_jobsignals *s, pid_t sender)
{
    return (sender > 0 && sender == s->daemon) || is_batch_daemon(sender);
}

/* A sender that signals both processes of the agent, as these daemons and pkill do, means the job
 * once. On a crowded machine the keeper may pass on its signal seconds later. */
static bool is_second(struct dt_jobsignals *s, int i, bool direct)
{
    uint64_t now = dt_now_ns(), *first = s->first_ns[i];
    bool second = first[!direct] && now - first[!direct] < MOMENT_MS * 1000000ull;

    first[!direct] = 0;
    first[direct] = second ? 0 : now;
    return second;
}

/* Whether the daemon signals every process of the step depends on the cluster: on ProctrackType of
 * Slurm, ENABLE_ADDGRP_KILL of Grid Engine. Otherwise Slurm signals only its own child, the keeper.
 * If the daemon signals this process as well, it also signals the ranks. */
static void report_signal(struct dt_jobsignals *s, const struct signalfd_siginfo *info)
{
    for (int i = 0; i < SIGNOS; i++) {
        bool direct = signos[i] == (int)info->ssi_signo;

        if (!direct && passed_as(i) != (int)info->ssi_signo)
            continue;
        if (direct && is_from_batch_daemon(s, (pid_t)info->ssi_pid))
            s->had_ns[i] = dt_now_ns();
        if (!is_second(s, i, direct))
            s->on_signal(s->arg, signos[i]);
    }
}

static void read_signals(struct dt_jobsignals *s)
{
    struct signalfd_siginfo info;

    while (read(s->fd, &info, sizeof info) == sizeof info)
        report_signal(s, &info);
}

static void on_signal_readable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* read reports the error */
    (void)events;
    read_signals(poll->data);
}

struct dt_jobsignals *dt_jobsignals_open(uv_loop_t *loop, void (*on_signal)(void *arg, int signo),
                                         void *arg, struct dt_error *err)
{
    struct dt_jobsignals *s = dt_xcalloc(1, sizeof *s);
    sigset_t set;

    s->on_signal = on_signal;
    s->arg = arg;
    s->daemon = batch_daemon_above();
    sigemptyset(&set);
    for (int i = 0; i < SIGNOS; i++) {
        sigaddset(&set, signos[i]);
        sigaddset(&set, passed_as(i));
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    dt_jobsignals_handle(SIG_DFL);
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0) {
        dt_error_set(err, "signalfd: %s", strerror(errno));
        free(s);
        return NULL;
    }
    uv_poll_init(loop, &s->poll, s->fd);
    s->poll.data = s;
    uv_poll_start(&s->poll, UV_READABLE, on_signal_readable);
    return s;
}

void dt_jobsignals_forget(struct dt_jobsignals *s, int signo)
{
    for (int i = 0; i < SIGNOS; i++) {
        if (!signo || signos[i] == signo)
            s->had_ns[i] = 0;
    }
}

/* dtrun, which is sent the signal after this process, may have told the agent to act on it before
 * the loop has looked for signals. */
bool dt_jobsignals_ranks_had(struct dt_jobsignals *s, int signo)
{
    read_signals(s);
    for (int i = 0; i < SIGNOS; i++) {
        if (signos[i] == signo)
            return s->had_ns[i] && dt_now_ns() - s->had_ns[i] < MOMENT_MS * 1000000ull;
    }
    return false;
}
