#include "launcher/agent/ranks/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/agent/ranks/pty.h"
#include "launcher/agent/ranks/rankproc.h"
#include "launcher/base/granted/limits.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "launcher/base/uvloop.h"
#include "runtime/wire/writeall.h"

struct dt_spawn {
    uv_poll_t poll;
    const struct dt_spawn_config *config;
    struct dt_spawn_events events;
    void *arg;
    int gate;     /* writing end */
    int errors;   /* reading end */
    int go;       /* the file that takes GO's payload */
    int child[3]; /* reading end of the gate, writing end of the error pipe, /dev/null */
    uint32_t ready;
    bool no_pty; /* a pseudo-terminal could not be opened */
    bool over;   /* an event was sent, or none is wanted any more */
    size_t have;
    struct dt_rank_report report; /* the report that is arriving */
};

enum { CHILD_GATE, CHILD_ERRORS, CHILD_NULL };

static const char dev_null[] = "/dev/null";

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void dt_spawn_close(struct dt_spawn *s)
{
    if (!s)
        return;
    s->over = true;
    for (int i = 0; i < 3; i++)
        close_fd(&s->child[i]);
    close_fd(&s->gate);
    close_fd(&s->go);
    if (s->poll.data)
        uv_close((uv_handle_t *)&s->poll, dt_uvloop_free_data);
    close_fd(&s->errors);
    if (!s->poll.data)
        free(s);
}

static void fail_spawn(struct dt_spawn *s, uint32_t index, enum dt_spawn_step step, int error,
                       const char *what)
{
    struct dt_msg_spawn_failed m = {
        .generation = s->config->start->generation,
        .rank = s->config->numbers.v[index],
        .step = (uint8_t)step,
        .error = error,
        .what = (char *)(uintptr_t)what,
    };

    if (s->over)
        return;
    s->over = true;
    s->events.failed(s->arg, &m);
}

/* Stores GO's payload where ranks read it. Returns 0, or -1 with errno. */
static int store_go(int file, const struct dt_msg_go *go)
{
    struct dt_put payload = { 0 };
    int rc;

    dt_msg_encode(&payload, DT_MSG_GO, go);
    rc = dt_write_all(file, payload.data, payload.len);
    dt_put_free(&payload);
    return rc;
}

void dt_spawn_go(struct dt_spawn *s, const struct dt_msg_go *go)
{
    char bytes[256] = { 0 };
    uint32_t left = s->config->numbers.n;

    if (store_go(s->go, go) < 0) {
        fail_spawn(s, 0, DT_SPAWN_SYSTEM, errno, "a memory file for the ranks' environment");
        return;
    }
    while (left) {
        ssize_t n = write(s->gate, bytes, left < sizeof bytes ? left : sizeof bytes);

        if (n > 0)
            left -= (uint32_t)n;
        else if (errno != EINTR)
            break; /* no process waits there: all have died, which the agent will notice */
    }
    close_fd(&s->gate);
}

/* Returns false if there is nothing to read now, or no more will come. */
static bool read_report(struct dt_spawn *s)
{
    ssize_t n = read(s->errors, (char *)&s->report + s->have, sizeof s->report - s->have);

    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        s->over = true;
        uv_poll_stop(&s->poll);
        s->events.running(s->arg);
        return false;
    }
    s->have += (size_t)n;
    if (s->have < sizeof s->report)
        return true;
    s->have = 0;
    if (s->report.ready && s->report.what[0])
        s->events.needs_pmix(s->arg, s->report.what);
    if (s->report.ready && s->report.horovod[0])
        s->events.uses_horovod(s->arg, s->report.horovod);
    if (!s->report.ready)
        fail_spawn(s, s->report.index, s->report.step, s->report.error, s->report.what);
    else if (++s->ready == s->config->numbers.n)
        s->events.ready(s->arg);
    return true;
}

static void read_reports(struct dt_spawn *s)
{
    while (!s->over && read_report(s))
        continue;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* read reports the error */
    (void)events;
    read_reports(poll->data);
}

/* The caller frees it. */
static char *describe_death(const struct dt_msg_exit *end)
{
    static const char who[] = "a process that was to become a rank";

    if (end->flags & DT_EXITED_OOM)
        return dt_xasprintf("%s was killed by the kernel: out of memory", who);
    if (!end->signo)
        return dt_xasprintf("%s exited with code %d", who, end->code);
    return dt_xasprintf("%s was killed by signal %d (%s)%s", who, end->signo, strsignal(end->signo),
                        end->signo == SIGSEGV ? "; is its stack too small (ulimit -s)?" : "");
}

void dt_spawn_died(struct dt_spawn *s, uint32_t index, const struct dt_msg_exit *end)
{
    char *what;

    read_reports(s);
    if (s->over || s->gate < 0)
        return;
    what = describe_death(end);
    fail_spawn(s, index, DT_SPAWN_SYSTEM, 0, what);
    free(what);
}

static int open_files(struct dt_spawn *s)
{
    int gate[2];
    int errors[2];

    if (pipe2(gate, O_CLOEXEC) < 0)
        return -1;
    s->gate = gate[1];
    s->child[CHILD_GATE] = gate[0];
    if (pipe2(errors, O_CLOEXEC) < 0)
        return -1;
    s->errors = errors[0];
    s->child[CHILD_ERRORS] = errors[1];
    s->go = memfd_create("dtrun-go", MFD_CLOEXEC);
    if (s->go < 0)
        return -1;
    s->child[CHILD_NULL] = open(dev_null, O_RDWR | O_CLOEXEC);
    return s->child[CHILD_NULL] < 0 ? -1 : 0;
}

static pid_t fork_process(const struct dt_rankproc *p)
{
    pid_t pid = dt_process_fork(p->config->cgroup);

    if (pid == 0)
        dt_rankproc_run(p);
    return pid;
}

static int open_stdout(struct dt_spawn *s, int ends[2])
{
    if (!s->config->start->unbuffered)
        return pipe2(ends, O_CLOEXEC);
    s->no_pty = dt_pty_open(ends) < 0;
    return s->no_pty ? -1 : 0;
}

/* Makes the pipes of a process and forks it. An auxiliary has no socket and no input. */
static int start_process(struct dt_spawn *s, struct dt_spawned *process, uint32_t i)
{
    const struct dt_msg_start *start = s->config->start;
    bool is_rank = i < start->ranks.n;
    bool has_stdin = is_rank && (start->stdin_rank == DT_STDIN_ALL ||
                                 (int64_t)start->stdin_rank == (int64_t)start->ranks.v[i]);
    int in[2] = { -1, -1 };
    int out[2] = { -1, -1 };
    int err[2] = { -1, -1 };
    pid_t pid = -1;
    int error;

    if ((!has_stdin || pipe2(in, O_CLOEXEC) == 0) && open_stdout(s, out) == 0 &&
        pipe2(err, O_CLOEXEC) == 0) {
        const struct dt_rankproc p = {
            .config = s->config,
            .index = i,
            .parent = getpid(),
            .in = has_stdin ? in[0] : s->child[CHILD_NULL],
            .out = out[1],
            .err = start->merge_stderr ? out[1] : err[1],
            .socket = is_rank ? dt_ranksock_child_fd(s->config->sock, i) : -1,
            .pmi = is_rank ? dt_pmisock_child_fd(s->config->pmi, i) : -1,
            .gate = s->child[CHILD_GATE],
            .go = s->go,
            .errors = s->child[CHILD_ERRORS],
        };

        pid = fork_process(&p);
    }
    error = errno;
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    *process =
        (struct dt_spawned){ .pid = pid < 0 ? 0 : pid, .in = in[1], .out = out[0], .err = err[0] };
    if (is_rank) {
        dt_ranksock_forked(s->config->sock, i);
        dt_pmisock_forked(s->config->pmi, i);
    }
    errno = error;
    return pid < 0 ? -1 : 0;
}

/* Names the limit that is too low for n processes, if there is one, or the file that is missing.
 * The caller frees it. Clears *error if the text says everything. */
static char *name_lack(const struct dt_spawn *s, int *error, uint32_t n)
{
    char *cgroup = *error == EAGAIN ? dt_limits_tasks("", n) : NULL, *text;
    const char *es = n == 1 ? "" : "es";
    struct rlimit limit;

    if (cgroup) {
        *error = 0;
        text = dt_xasprintf("fork of %u process%s: %s; raise that, or start fewer ranks here", n,
                            es, cgroup);
    } else if (*error == EAGAIN && getrlimit(RLIMIT_NPROC, &limit) == 0 &&
               limit.rlim_cur != RLIM_INFINITY) {
        text = dt_xasprintf("fork of %u process%s, where %llu are allowed", n, es,
                            (unsigned long long)limit.rlim_cur);
    } else if (*error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        text = dt_xasprintf("pipes for %u process%s, where %llu open files are allowed", n, es,
                            (unsigned long long)limit.rlim_cur);
    } else if (s->no_pty) {
        text = dt_pty_lack(error, n);
    } else if (s->go >= 0 && s->child[CHILD_NULL] < 0) {
        text = dt_xstrdup(dev_null);
    } else {
        text = dt_xasprintf("fork of %u process%s", n, es);
    }
    free(cgroup);
    return text;
}

/* Fills *why from errno, and closes s. Returns -1. */
static int fail_open(struct dt_spawn *s, uint32_t i, struct dt_msg_spawn_failed *why)
{
    const struct dt_u32s *numbers = &s->config->numbers;
    static char *what;
    int error = errno;

    free(what);
    what = name_lack(s, &error, numbers->n);
    *why = (struct dt_msg_spawn_failed){
        .generation = s->config->start->generation,
        .rank = numbers->v[i],
        .step = DT_SPAWN_SYSTEM,
        .error = error,
        .what = what,
    };
    dt_spawn_close(s);
    return -1;
}

int dt_spawn_open(struct dt_spawn **spawn, uv_loop_t *loop, const struct dt_spawn_config *config,
                  struct dt_spawned *processes, const struct dt_spawn_events *events, void *arg,
                  struct dt_msg_spawn_failed *why)
{
    struct dt_spawn *s = dt_xcalloc(1, sizeof *s);
    uint32_t i = 0;

    *s = (struct dt_spawn){ .config = config,
                            .events = *events,
                            .arg = arg,
                            .gate = -1,
                            .errors = -1,
                            .go = -1,
                            .child = { -1, -1, -1 } };
    *spawn = NULL;
    for (uint32_t k = 0; k < config->numbers.n; k++)
        processes[k] = (struct dt_spawned){ .in = -1, .out = -1, .err = -1 };
    if (open_files(s) < 0)
        return fail_open(s, i, why);
    for (; i < config->numbers.n; i++) {
        if (start_process(s, &processes[i], i) < 0)
            return fail_open(s, i, why);
        events->forking(arg);
    }
    for (int k = 0; k < 3; k++)
        close_fd(&s->child[k]);
    uv_poll_init(loop, &s->poll, s->errors);
    s->poll.data = s;
    uv_poll_start(&s->poll, UV_READABLE, on_readable);
    *spawn = s;
    return 0;
}
