#include "launcher/agent/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/clock.h"
#include "launcher/agent/jobsignals.h"
#include "launcher/agent/ranks/cgroup.h"
#include "launcher/agent/ranks/removetree.h"
#include "launcher/agent/sweep/ncclfiles.h"
#include "launcher/agent/sweep/procstat.h"
#include "launcher/base/clock.h"
#include "launcher/base/error.h"
#include "launcher/base/granted/limits.h"
#include "launcher/base/pidfd.h"

enum { ROUND_MS = 5 };

static void remove_files(struct dt_keeper *keeper)
{
    dt_removetree_named(keeper->file_dir);
    dt_removetree_named(keeper->mpi_dir);
    dt_ncclfiles_remove(DT_NCCLFILES_DIR, NULL, NULL);
}

bool dt_keeper_end_all(struct dt_keeper *keeper, int timeout_ms)
{
    uint64_t deadline = dt_now_ns() + (uint64_t)timeout_ms * 1000000;
    bool found;

    dt_cgroup_kill(keeper->cgroup);
    found = dt_sweep_all(&keeper->groups, timeout_ms);
    while (!dt_cgroup_remove(keeper->cgroup) && dt_now_ns() < deadline)
        poll(NULL, 0, ROUND_MS);
    remove_files(keeper);
    return found;
}

void dt_keeper_kill(const struct dt_keeper *keeper)
{
    if (keeper->self < 0)
        kill(getppid(), SIGKILL); /* before Linux 5.3 */
    else
        dt_pidfd_kill(keeper->self);
}

static uint64_t ms_since(uint64_t time_ns)
{
    return (dt_now_ns() - time_ns) / 1000000;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns for how many more ms the worker may be silent. The keeper enforces the lease and also
 * watches the channel to dtrun, because a worker that is stuck or stopped does neither. When the
 * lease ends the worker shows that it is alive, or it has left the ranks running. closed_ns: when
 * the channel was closed, or 0. */
static uint64_t silence_allowed_ms(const struct dt_keeper *keeper, uint64_t heard_ns,
                                   uint64_t closed_ns)
{
    uint64_t now = dt_now_ns(), lease_ms = keeper->lease_ms;
    uint64_t left = dt_clock_ms_left(heard_ns, now, lease_ms);
    uint64_t began_ns = atomic_load(&keeper->launcher_heard_ns);

    if (closed_ns && closed_ns < heard_ns)
        closed_ns = heard_ns;
    if (closed_ns)
        left = least(left, dt_clock_ms_left(closed_ns, now, DT_KEEPER_CLOSED_MS));
    if (began_ns && heard_ns < began_ns + lease_ms * 1000000)
        left = least(left, dt_clock_ms_left(began_ns, now, lease_ms + DT_KEEPER_LEASE_MARGIN_MS));
    return left;
}

/* Polls for part of the time that is left, and so notices if the keeper itself stood still. Such a
 * time does not count as the worker's silence: *heard_ns becomes the time when the keeper ran
 * again. */
static int poll_for_turn(struct pollfd fds[2], uint64_t left_ms, uint64_t limit_ms,
                         uint64_t *heard_ns)
{
    uint64_t turn_ms = left_ms < limit_ms / 4 ? left_ms : limit_ms / 4;
    uint64_t due = dt_now_ns() + turn_ms * 1000000, now;
    int n = poll(fds, 2, (int)turn_ms);

    now = dt_now_ns();
    if (dt_clock_stood_still(due, now, limit_ms))
        *heard_ns = now;
    return n;
}

/* Returns 0 if the worker is dead, or for how many ms it has been silent if that is too long. */
static uint64_t watch_worker(const struct dt_keeper *keeper, int fd)
{
    struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
                            { .fd = STDIN_FILENO, .events = POLLRDHUP } };
    uint64_t heard = dt_now_ns();
    uint64_t closed = 0; /* when dtrun closed the channel, or 0 */
    char beats[64];

    for (;;) {
        uint32_t limit = closed && keeper->lease_ms > DT_KEEPER_CLOSED_MS ? DT_KEEPER_CLOSED_MS
                                                                          : keeper->lease_ms;
        int n = poll_for_turn(fds, silence_allowed_ms(keeper, heard, closed), limit, &heard);

        if (n > 0 && fds[0].revents) {
            ssize_t got = read(fd, beats, sizeof beats);

            if (got == 0 || (got < 0 && errno != EINTR))
                return 0;
            heard = dt_now_ns();
        }
        if (n > 0 && fds[1].revents) {
            closed = dt_now_ns();
            fds[1].fd = -1;
        }
        if (n == 0 && silence_allowed_ms(keeper, heard, closed) == 0)
            return ms_since(heard);
    }
}

/* Says why the worker is silent and what helps, as far as its state shows that. */
static const char *reason(pid_t worker)
{
    struct dt_procstat p;

    if (!dt_procstat_read(&p, worker))
        return "";
    switch (p.state) {
    case 'T':
        return " (it was stopped)";
    case 'D':
        return " (it waits inside the kernel, as for a file system that hangs)";
    case 'R':
        return " (it got too little CPU time; --heartbeat gives it longer)";
    default:
        return "";
    }
}

/* What a worker waits for inside the kernel may end only with its ranks: a rank that splices a
 * socket to its output holds the lock of that pipe, which the worker needs to read from it. */
static int kill_and_reap(const struct dt_keeper *keeper, pid_t worker)
{
    uint64_t deadline = dt_now_ns() + DT_KEEPER_SWEEP_MS * 1000000ull;
    int status;

    dt_jobsignals_pass_on(0);
    kill(worker, SIGKILL);
    while (waitpid(worker, &status, dt_now_ns() < deadline ? WNOHANG : 0) != worker) {
        dt_sweep_kill(&keeper->groups, DT_SPARE_NONE, NULL, NULL, NULL);
        poll(NULL, 0, ROUND_MS);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : DT_EXIT_SIGNAL + WTERMSIG(status);
}

static int fail_keeper(const char *what)
{
    fprintf(stderr, "dtrun-agent: %s: %s\n", what, strerror(errno));
    return DT_EXIT_LAUNCH;
}

static int fail_to_fork(void)
{
    char *cgroup;

    if (errno != EAGAIN)
        return fail_keeper("fork");
    cgroup = dt_limits_tasks("", 1);
    fprintf(stderr, "dtrun-agent: fork: %s\n",
            cgroup ? cgroup : "allow more processes (ulimit -u)");
    free(cgroup);
    return DT_EXIT_LAUNCH;
}

int dt_keeper_run(uint32_t lease_ms, int (*work)(struct dt_keeper *keeper, int fd))
{
    struct dt_keeper *keeper =
        mmap(NULL, sizeof *keeper, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    const char *why;
    uint64_t silent_ms;
    pid_t worker;
    int code;

    if (keeper == MAP_FAILED)
        return fail_keeper("mmap");
    setsid(); /* signals of a terminal are for dtrun; fails if sshd did it already */
    keeper->lease_ms = lease_ms;
    keeper->self = dt_pidfd_open(getpid());
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return fail_keeper("prctl(PR_SET_CHILD_SUBREAPER)");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_keeper("socketpair");
    dt_jobsignals_handle(SIG_IGN); /* until the worker handles them */
    worker = fork();
    if (worker < 0)
        return fail_to_fork();
    if (worker == 0) {
        close(ends[0]);
        prctl(PR_SET_CHILD_SUBREAPER, 1); /* children do not inherit this */
        prctl(PR_SET_PDEATHSIG, SIGCONT); /* wakes a stopped worker when the keeper is killed */
        return work(keeper, ends[1]);
    }
    close(ends[1]);
    dt_jobsignals_pass_on(worker); /* the worker reports them to the launcher */
    silent_ms = watch_worker(keeper, ends[0]);
    why = reason(worker);
    code = kill_and_reap(keeper, worker);
    if (!dt_keeper_end_all(keeper, DT_KEEPER_SWEEP_MS))
        fprintf(stderr, "dtrun-agent: processes that its ranks started in process groups of their "
                        "own may still run; to find them dtrun-agent needs the /proc of its "
                        "PID namespace: mount it\n");
    if (silent_ms)
        fprintf(stderr, "dtrun-agent: its worker was stuck for %.1f s%s; it was killed\n",
                (double)silent_ms / 1000, why);
    return code;
}
