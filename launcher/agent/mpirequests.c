#include "launcher/agent/mpirequests.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/agent/ending.h"
#include "launcher/agent/horovodserve.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/place/frameworks.h"

/* ---- fences ---- */

/* A job on one host does not wait for others. */
static void fence(struct dt_generation *g, const char *data, size_t n, bool by_pmix)
{
    const struct dt_msg_blob blob = { (const uint8_t *)data, n };
    const struct dt_msg_fence m = { g->start.generation, blob };
    const struct dt_msg_fenced alone = { g->start.generation, blob };

    g->fence_is_pmix = by_pmix;
    if (g->start.nodes == 1)
        dt_generation_fenced(g, &alone);
    else
        dt_channel_send(g->host->channel, DT_MSG_FENCE, &m);
}

static void on_pmi_fence(void *arg, const char *data, size_t n)
{
    fence(arg, data, n, false);
}

static void on_pmix_fence(void *arg, const char *data, size_t n)
{
    fence(arg, data, n, true);
}

bool dt_generation_fenced(struct dt_generation *g, const struct dt_msg_fenced *m)
{
    if (m->generation != g->start.generation)
        return true;
    if (!g->fence_is_pmix)
        return g->pmi && dt_pmisock_fenced(g->pmi, (const char *)m->data.p, m->data.n);
    dt_pmixhelper_fenced(g->pmix, m);
    return true;
}

/* ---- names and meetings ---- */

void dt_generation_share(struct dt_generation *g, const struct dt_msg_share *m)
{
    if (g->pmix && m->generation == g->start.generation)
        dt_pmixhelper_share(g->pmix, m);
}

static void on_pmix_share(void *arg, const struct dt_msg_share *m)
{
    struct dt_generation *g = arg;

    if (g->start.nodes == 1)
        dt_generation_share(g, m);
    else
        dt_channel_send(g->host->channel, DT_MSG_SHARE, m);
}

/* ---- MPI_Abort ---- */

/* Code 0, or one whose low byte is 0, would hide the failure. */
static void on_pmi_abort(void *arg, uint32_t local_rank, int code)
{
    struct dt_generation *g = arg;
    struct dt_process *p = &g->processes[local_rank];

    if (!p->alive || p->aborted)
        return;
    p->aborted = code & 0xff ? code & 0xff : 1;
    p->aborted_ns = dt_now_ns();
    kill(p->spawned.pid, SIGKILL);
}

static void on_pmix_abort(void *arg, uint32_t rank, int code)
{
    struct dt_generation *g = arg;
    int64_t local_rank = dt_u32s_find(&g->start.ranks, rank);

    if (local_rank >= 0)
        on_pmi_abort(g, (uint32_t)local_rank, code);
}

/* ---- MPI_Init and MPI_Finalize ---- */

static void on_pmix_state(void *arg, uint32_t rank, bool inside)
{
    struct dt_generation *g = arg;
    const struct dt_msg_mpi_state m = { g->start.generation, rank, inside };
    int64_t local_rank = dt_u32s_find(&g->start.ranks, rank);

    if (local_rank >= 0)
        g->processes[local_rank].mpi_done = !inside;
    dt_channel_send(g->host->channel, DT_MSG_MPI_STATE, &m);
}

static void on_pmi_state(void *arg, uint32_t local_rank, bool inside)
{
    struct dt_generation *g = arg;

    on_pmix_state(g, g->start.ranks.v[local_rank], inside);
}

/* ---- the PMIx server ---- */

static void on_print(void *arg, const struct dt_msg_output *m)
{
    struct dt_generation *g = arg;
    uint8_t stream = g->start.merge_stderr ? STDOUT_FILENO : m->fd;

    if (!dt_relay_print(g->relay, m->rank, stream, m->data.p, m->data.n))
        dt_generation_say(g, "rank %u: %.*s", m->rank, (int)m->data.n, (const char *)m->data.p);
}

void dt_mpirequests_maybe_ready(struct dt_generation *g)
{
    const struct dt_msg_ready m = { g->start.generation, dt_horovodserve_port(g) };

    if (g->all_wait && !g->pmix_pending)
        dt_channel_send(g->host->channel, DT_MSG_READY, &m);
}

static void on_pmix_ready(void *arg, struct dt_strs *env)
{
    struct dt_generation *g = arg;

    g->mpi_env = *env;
    *env = (struct dt_strs){ 0 };
    g->pmix_pending = false;
    dt_mpirequests_maybe_ready(g);
}

/* Without a server MPI_Init makes every process its own job. All would write the same results,
 * which users easily mistake for success. A program that is linked with MPI need not call it: only
 * --env mpi makes this an error. */
static void start_without_server(struct dt_generation *g, const char *why)
{
    bool declared = g->start.frameworks & DT_FRAMEWORK_MPI;
    char *text = dt_xasprintf("%s %s MPI (%s), but there is no PMIx server for it: every rank "
                              "%s be an MPI job of its own, of size 1. %s",
                              g->start.argv.v[0], declared ? "may use" : "uses", g->needs_pmix,
                              declared ? "would" : "will", why);

    g->pmix_pending = false;
    if (declared && g->start.np > 1) {
        dt_ending_refuse(g, DT_SPAWN_SYSTEM, 0, text);
    } else {
        if (g->start.np > 1)
            dt_generation_on_log(g, text);
        dt_mpirequests_maybe_ready(g);
    }
    free(text);
}

/* Without this line the failure would seem to be that of a rank. Open MPI 4 ends ranks that lose
 * their server. With Open MPI 5 they may wait for ever, and those that call MPI_Init later may
 * become jobs of their own. */
static void on_lost(struct dt_generation *g, const char *why)
{
    dt_generation_say(g,
                      "%s. MPI ranks of a host end with its PMIx server; --max-restarts lets dtrun "
                      "start the job again",
                      why);
    for (uint32_t i = 0; i < g->start.ranks.n; i++) {
        struct dt_process *p = &g->processes[i];

        if (p->alive && !p->mpi_done)
            kill(p->spawned.pid, SIGKILL);
    }
}

static void on_pmix_gone(void *arg, const char *why)
{
    struct dt_generation *g = arg;

    if (g->stopping || g->stopped_at_once || g->phase > DT_GENERATION_RUNNING)
        return;
    if (g->pmix_pending)
        start_without_server(g, why);
    else
        on_lost(g, why);
}

void dt_mpirequests_needs_pmix(void *arg, const char *why)
{
    static const struct dt_pmixhelper_events events = { on_pmix_ready, on_pmix_fence,
                                                        on_pmix_share, on_pmix_abort,
                                                        on_pmix_state, dt_generation_on_log,
                                                        on_print,      on_pmix_gone };
    struct dt_generation *g = arg;

    g->needs_pmix = dt_xstrdup(why);
    g->pmix_pending = true;
    g->pmix = dt_pmixhelper_create(g->host->loop, &g->start, g->host->mpi_dir, &events, g);
}

void dt_mpirequests_free(struct dt_generation *g)
{
    dt_pmixhelper_destroy(g->pmix);
    dt_strs_free(&g->mpi_env);
    free(g->needs_pmix);
}

const struct dt_pmisock_events dt_mpirequests_pmi_events = { on_pmi_fence, on_pmi_abort,
                                                             on_pmi_state, dt_generation_on_log };
