#include "launcher/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/base/error.h"

static int ended_by;

/* If a parent closed a standard descriptor, the next open would get its number, and messages would
 * be written into that file. */
static void open_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0)
            exit(DT_EXIT_LAUNCH);
    }
}

static pid_t fork_into(int cgroup)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cgroup,
    };
    pid_t pid = cgroup < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof args);

    return pid < 0 ? fork() : pid;
}

pid_t dt_process_fork(int cgroup)
{
    sigset_t all, before;
    pid_t pid;
    int error;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = fork_into(cgroup);
    if (pid == 0)
        return 0;
    error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

void dt_process_unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void reset_signals(void)
{
    dt_process_unblock_signals();
    signal(SIGCHLD, SIG_DFL); /* otherwise the kernel reaps children itself */
    signal(SIGPIPE, SIG_IGN); /* write reports EPIPE when the reader has gone */
    signal(SIGXFSZ, SIG_IGN); /* write reports EFBIG when the file may not grow (ulimit -f) */
    signal(SIGTTIN, SIG_IGN); /* read reports EIO when the terminal may not be read */
    signal(SIGTTOU, SIG_IGN); /* the terminal may be written to, even after "stty tostop" */
}

void dt_process_init(void)
{
    open_standard_fds();
    reset_signals();
}

void dt_process_ended_by(int signo)
{
    ended_by = signo;
}

int dt_process_end(int code)
{
    if (!ended_by || code != DT_EXIT_SIGNAL + ended_by)
        return code;
    fflush(NULL);
    signal(ended_by, SIG_DFL);
    raise(ended_by);
    return code; /* the signal did not end the process: it is PID 1 of a container */
}

bool dt_process_ignores(int signo)
{
    struct sigaction old;

    return sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_IGN;
}
