#include "launcher/agent/unserved/procscan.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launcher/agent/sweep/procenv.h"
#include "launcher/agent/sweep/proclist.h"
#include "launcher/base/closefrom.h"
#include "launcher/base/mem.h"
#include "launcher/base/process.h"
#include "launcher/base/strbuf.h"
#include "launcher/base/writeall.h"

enum { FINDINGS = 4 }; /* one for each library */

/* When to look, in ms from the start. Programs may take minutes to load their libraries. */
static const uint64_t looks_ms[] = { 1000, 3000, 10000, 30000, 100000 };

_Static_assert(sizeof(struct dt_procscan_finding[FINDINGS]) <= PIPE_BUF, "one read takes all");

struct dt_procscan {
    uv_timer_t timer;
    uv_poll_t poll; /* open exactly as long as out */
    unsigned handles;
    int out; /* where the findings of the child that looks arrive; -1: there is none */
    size_t looks;
    struct dt_procscan_set set; /* libraries: those not found yet */
    dt_procscan_found *found;
    void *arg;
    uint32_t n;
    pid_t pids[];
};

/* ---- in the child ---- */

struct look {
    struct dt_procscan_set set;
    struct dt_procscan_finding v[FINDINGS];
    size_t n;
};

/* Maps may have a million lines, and libraries are often in the last of them. */
static void read_maps(struct dt_mapped *mapped, pid_t pid)
{
    char *path = dt_xasprintf("/proc/%d/maps", (int)pid), *line = NULL;
    FILE *f = fopen(path, "re");
    size_t cap = 0;
    ssize_t n;

    while (f && (n = getline(&line, &cap, f)) > 0)
        dt_mapped_add(mapped, line, (size_t)n);
    if (f)
        fclose(f);
    free(line);
    free(path);
}

/* An empty environment looks like that of a process that has ended; only the latter has no maps. */
static bool read_environment(struct dt_strbuf *env, pid_t pid)
{
    struct dt_mapped again = { 0 };

    if (dt_procenv_read(env, pid))
        return true;
    read_maps(&again, pid);
    return dt_mapped_any(&again);
}

/* A process that may not be read shows nothing. */
static void look_at(struct look *look, const struct dt_proclist_process *p, uint32_t local_rank)
{
    struct dt_strbuf env = { 0 };
    struct dt_mapped mapped = { 0 };
    unsigned library = 0;

    read_maps(&mapped, p->pid);
    if (dt_mapped_any(&mapped) && read_environment(&env, p->pid))
        library = look->set.libraries &
                  dt_mapped_unserved(&mapped, dt_strbuf_text(&env), env.len, look->set.served);
    if (library) {
        struct dt_procscan_finding *f = &look->v[look->n++];

        *f =
            (struct dt_procscan_finding){ library, dt_mapped_is_bare(dt_strbuf_text(&env), env.len),
                                          local_rank, p->pid, "" };
        snprintf(f->path, sizeof f->path, "%s", dt_mapped_path(&mapped, library));
        look->set.libraries &= ~library;
    }
    dt_strbuf_free(&env);
}

static void look_at_all(struct look *look, const struct dt_procscan *s, pid_t agent)
{
    struct dt_proclist all = { 0 };

    dt_proclist_read(&all);
    for (size_t i = 0; i < all.n && look->set.libraries; i++) {
        pid_t branch = dt_proclist_branch(&all, &all.v[i], agent);

        for (uint32_t rank = 0; branch && rank < s->n; rank++) {
            if (s->pids[rank] == branch)
                look_at(look, &all.v[i], rank);
        }
    }
    dt_proclist_free(&all);
}

/* A look that blocks must keep nothing open on which others wait. */
static __attribute__((noreturn)) void run_look(const struct dt_procscan *s, int out, pid_t agent)
{
    struct look look = { .set = s->set };

    prctl(PR_SET_NAME, "dtrun-look");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent || dup2(out, STDIN_FILENO) < 0)
        _exit(1);
    dt_close_from(STDIN_FILENO + 1, false);
    look_at_all(&look, s, agent);
    dt_write_all(STDIN_FILENO, look.v, look.n * sizeof *look.v);
    _exit(0);
}

/* ---- in the agent ---- */

static void on_procscan_closed(uv_handle_t *handle)
{
    struct dt_procscan *s = handle->data;

    if (--s->handles == 0)
        free(s);
}

static void end_look(struct dt_procscan *s)
{
    if (s->out < 0)
        return;
    uv_close((uv_handle_t *)&s->poll, on_procscan_closed);
    close(s->out);
    s->out = -1;
}

static void on_findings(uv_poll_t *poll, int status, int events)
{
    struct dt_procscan *s = poll->data;
    struct dt_procscan_finding v[FINDINGS];
    ssize_t n = read(s->out, v, sizeof v);

    (void)status; /* read reports the error */
    (void)events;
    end_look(s);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof *v; i++) {
        s->set.libraries &= ~v[i].library;
        s->found(s->arg, &v[i]);
    }
    if (!s->set.libraries)
        uv_timer_stop(&s->timer);
}

static void begin_look(struct dt_procscan *s)
{
    pid_t agent = getpid(), pid;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid = dt_process_fork(-1);
    if (pid == 0)
        run_look(s, ends[1], agent);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return;
    }
    s->out = ends[0];
    uv_poll_init(s->timer.loop, &s->poll, s->out);
    s->poll.data = s;
    s->handles++;
    uv_poll_start(&s->poll, UV_READABLE, on_findings);
}

static void on_look_due(uv_timer_t *timer)
{
    struct dt_procscan *s = timer->data;
    uint64_t now_ms = looks_ms[s->looks++];

    if (s->looks < sizeof looks_ms / sizeof *looks_ms)
        uv_timer_start(timer, on_look_due, looks_ms[s->looks] - now_ms, 0);
    if (s->out < 0)
        begin_look(s);
}

struct dt_procscan *dt_procscan_create(uv_loop_t *loop, const pid_t *pids, uint32_t n,
                                       struct dt_procscan_set set, dt_procscan_found *found,
                                       void *arg)
{
    struct dt_procscan *s = dt_xcalloc(1, sizeof *s + n * sizeof *pids);

    s->out = -1;
    s->handles = 1;
    s->set = set;
    s->found = found;
    s->arg = arg;
    s->n = n;
    memcpy(s->pids, pids, n * sizeof *pids);
    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    uv_timer_start(&s->timer, on_look_due, looks_ms[0], 0);
    return s;
}

void dt_procscan_destroy(struct dt_procscan *s)
{
    if (!s)
        return;
    end_look(s);
    uv_close((uv_handle_t *)&s->timer, on_procscan_closed);
}
