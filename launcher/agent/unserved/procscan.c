#include "launcher/agent/unserved/procscan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/sweep/look.h"
#include "launcher/agent/sweep/procenv.h"
#include "launcher/agent/sweep/proclist.h"
#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/base/uvloop.h"

enum { FINDINGS = 4 }; /* one for each library */

/* When to look, in ms from the start. Programs may take minutes to load their libraries. */
static const uint64_t looks_ms[] = { 300, 1000, 3000, 10000, 30000, 100000 };

_Static_assert(sizeof(struct dt_procscan_finding[FINDINGS]) <= DT_LOOK_ANSWER, "all are told");

struct dt_procscan {
    uv_timer_t timer;
    struct dt_look *look; /* NULL: none is under way */
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
    struct dt_procscan_finding *v;
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

/* The process may have a root directory of its own, as in a container. */
static bool has_pmix_plugin(const struct dt_mapped *mapped, pid_t pid)
{
    char plugin[DT_MAPPED_PATH], *path;
    bool has;

    dt_mapped_pmix_plugin(mapped, plugin);
    if (!*plugin)
        return false;
    path = dt_xasprintf("/proc/%d/root%s", (int)pid, plugin);
    has = access(path, F_OK) == 0;
    free(path);
    return has;
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
    mapped.pmix_has_plugin = has_pmix_plugin(&mapped, p->pid);
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

static size_t look_at_all(const void *what, pid_t agent, void *answer)
{
    const struct dt_procscan *s = what;
    struct look look = { .set = s->set, .v = answer };
    struct dt_proclist all = { 0 };

    dt_proclist_read(&all, NULL, NULL);
    for (size_t i = 0; i < all.n && look.set.libraries; i++) {
        pid_t branch = dt_proclist_branch(&all, &all.v[i], agent);

        for (uint32_t rank = 0; branch && rank < s->n; rank++) {
            if (s->pids[rank] == branch)
                look_at(&look, &all.v[i], rank);
        }
    }
    dt_proclist_free(&all);
    return look.n * sizeof *look.v;
}

/* ---- in the agent ---- */

static void on_looked(void *arg, const void *answer, size_t n)
{
    const struct dt_procscan_finding *v = answer;
    struct dt_procscan *s = arg;

    s->look = NULL;
    for (size_t i = 0; i < n / sizeof *v; i++) {
        s->set.libraries &= ~v[i].library;
        s->found(s->arg, &v[i]);
    }
    if (!s->set.libraries)
        uv_timer_stop(&s->timer);
}

static void on_look_due(uv_timer_t *timer)
{
    struct dt_procscan *s = timer->data;
    uint64_t now_ms = looks_ms[s->looks++];

    if (s->looks < sizeof looks_ms / sizeof *looks_ms)
        uv_timer_start(timer, on_look_due, looks_ms[s->looks] - now_ms, 0);
    if (!s->look)
        s->look = dt_look_begin(timer->loop, &(struct dt_look_at){ look_at_all, s, on_looked, s });
}

struct dt_procscan *dt_procscan_create(uv_loop_t *loop, const pid_t *pids, uint32_t n,
                                       struct dt_procscan_set set, dt_procscan_found *found,
                                       void *arg)
{
    struct dt_procscan *s = dt_xcalloc(1, sizeof *s + n * sizeof *pids);

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
    dt_look_end(s->look);
    uv_close((uv_handle_t *)&s->timer, dt_uvloop_free_data);
}
