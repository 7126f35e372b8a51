#include "launcher/agent/facts/smi.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/clock.h"
#include "launcher/base/clock.h"
#include "launcher/base/error.h"
#include "launcher/base/pidfd.h"
#include "launcher/base/process.h"

enum { PATIENCE_MS = 5000, REAP_MS = 1000 };

bool dt_smi_start(struct dt_smi *smi, const char *const *argv)
{
    int ends[2];
    pid_t pid;

    *smi = (struct dt_smi){ .pidfd = -1, .out = -1 };
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid = dt_process_fork(-1);
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        dup2(null, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        dt_process_unblock_signals();
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(DT_EXIT_NOT_FOUND);
    }
    close(ends[1]);
    if (pid < 0)
        close(ends[0]);
    else
        *smi = (struct dt_smi){ pid, dt_pidfd_open(pid), ends[0] };
    return pid > 0;
}

/* Without a pidfd the id may be another process's by now. */
void dt_smi_end(struct dt_smi *smi, struct dt_groups *groups)
{
    if (smi->pidfd >= 0 ? dt_pidfd_kill(smi->pidfd) == 0 : kill(smi->pid, SIGKILL) == 0)
        dt_groups_abandon(groups, smi->pid);
    if (smi->pidfd >= 0)
        close(smi->pidfd);
    close(smi->out);
    *smi = (struct dt_smi){ .pidfd = -1, .out = -1 };
}

/* Reads what arrives before the deadline. */
static void read_all(struct dt_strbuf *text, int fd)
{
    uint64_t begun = dt_now_ns();
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char buffer[4096];
    ssize_t n = 1;

    while (n > 0 && poll(&p, 1, (int)dt_clock_ms_left(begun, dt_now_ns(), PATIENCE_MS)) > 0) {
        n = read(fd, buffer, sizeof buffer);
        if (n > 0)
            dt_strbuf_add(text, buffer, (size_t)n);
    }
}

void dt_smi_run(struct dt_strbuf *text, const char *const *argv, struct dt_groups *groups)
{
    struct dt_smi smi;
    struct pollfd p = { .events = POLLIN };

    if (!dt_smi_start(&smi, argv))
        return;
    read_all(text, smi.out);
    kill(smi.pid, SIGKILL); /* not reaped yet */
    p.fd = smi.pidfd;
    if (smi.pidfd >= 0)
        poll(&p, 1, REAP_MS);
    if (smi.pidfd >= 0 && waitpid(smi.pid, NULL, WNOHANG) == 0) {
        fprintf(stderr,
                "dtrun-agent: nvidia-smi (pid %d) does not end although it was killed; it waits "
                "for the GPU driver (see /proc/%d/stack)\n",
                (int)smi.pid, (int)smi.pid);
    }
    dt_smi_end(&smi, groups);
}
