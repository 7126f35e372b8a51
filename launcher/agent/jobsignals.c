#include "launcher/agent/jobsignals.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/mem.h"

enum { MOMENT_MS = 5000 }; /* longer than the launcher waits for other hosts before it acts */

static const int signos[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

enum { SIGNOS = sizeof signos / sizeof *signos };

struct dt_jobsignals {
    uv_poll_t poll;
    int fd;
    void (*told)(void *arg, int signo);
    void *arg;
    uint64_t had_ns[SIGNOS]; /* when ranks received it; 0: never */
};

void dt_jobsignals_handle(void (*handler)(int signo))
{
    for (int i = 0; i < SIGNOS; i++)
        signal(signos[i], handler);
}

static volatile pid_t dti_heir;

static void pass_on(int signo, siginfo_t *info, void *context)
{
    const union sigval sender = { .sival_int = info->si_pid };
    int error = errno;

    (void)context;
    if (dti_heir)
        sigqueue(dti_heir, signo, sender);
    errno = error;
}

void dt_jobsignals_pass_on(pid_t process)
{
    const struct sigaction action = { .sa_sigaction = pass_on,
                                      .sa_flags = SA_SIGINFO | SA_RESTART };

    dti_heir = process;
    for (int i = 0; i < SIGNOS && process; i++)
        sigaction(signos[i], &action, NULL);
}

/* A signal that the keeper passes on carries its original sender. Of two pending signals the kernel
 * keeps only one: the keeper's, if slurmstepd signals the keeper first. */
static pid_t sender_of(const struct signalfd_siginfo *info)
{
    return info->ssi_code == SI_QUEUE && (pid_t)info->ssi_pid == getppid() ? info->ssi_int
                                                                           : (pid_t)info->ssi_pid;
}

/* slurmstepd signals all processes below it, including the ranks. Every other sender signals only
 * the agent. */
static bool is_of_all(pid_t sender)
{
    char path[64], name[32] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)sender);
    f = sender > 0 ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    if (!fgets(name, sizeof name, f))
        name[0] = '\0';
    fclose(f);
    return strcmp(name, "slurmstepd\n") == 0;
}

static void on_signal_readable(uv_poll_t *poll, int status, int events)
{
    struct dt_jobsignals *s = poll->data;
    struct signalfd_siginfo info;

    (void)status; /* read reports the error */
    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info) {
        for (int i = 0; i < SIGNOS; i++) {
            if (signos[i] == (int)info.ssi_signo && is_of_all(sender_of(&info)))
                s->had_ns[i] = dt_now_ns();
        }
        s->told(s->arg, (int)info.ssi_signo);
    }
}

struct dt_jobsignals *dt_jobsignals_open(uv_loop_t *loop, void (*told)(void *arg, int signo),
                                         void *arg, struct dt_error *err)
{
    struct dt_jobsignals *s = dt_xcalloc(1, sizeof *s);
    sigset_t set;

    s->told = told;
    s->arg = arg;
    sigemptyset(&set);
    for (int i = 0; i < SIGNOS; i++)
        sigaddset(&set, signos[i]);
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

bool dt_jobsignals_ranks_had(const struct dt_jobsignals *s, int signo)
{
    for (int i = 0; i < SIGNOS; i++) {
        if (signos[i] == signo)
            return s->had_ns[i] && dt_now_ns() - s->had_ns[i] < MOMENT_MS * 1000000ull;
    }
    return false;
}
