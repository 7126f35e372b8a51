#include "launcher/agent/unservednews.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/place/frameworks.h"

static char *warning(const struct dt_procscan_finding *finding)
{
    if (finding->framework == DT_FRAMEWORK_HOROVOD)
        return dt_xasprintf("Horovod (%s), but is not told where the other ranks are: every rank "
                            "that calls hvd.init() trains alone, as rank 0 of 1; --env horovod "
                            "tells them",
                            finding->path);
    return dt_xasprintf("Open MPI (%s), but there is no PMIx server for it: every rank that calls "
                        "MPI_Init is an MPI job of its own, of size 1; --env mpi starts the server",
                        finding->path);
}

static void on_found(void *arg, const struct dt_procscan_finding *finding)
{
    struct dt_generation *g = arg;
    char *what = warning(finding);
    char *text =
        dt_xasprintf("rank %u (%s): process %d has loaded %s",
                     g->start.ranks.v[finding->local_rank], g->start.host, (int)finding->pid, what);

    g->host->warned_unserved |= finding->framework;
    dt_generation_log(g, text);
    free(text);
    free(what);
}

/* All ranks run the same program, so those of the first host show what it loads, and the user is
 * warned once. */
void dt_unservednews_begin(struct dt_generation *g)
{
    unsigned recognised =
        (g->needs_pmix ? DT_FRAMEWORK_MPI : 0) | (g->uses_horovod ? DT_FRAMEWORK_HOROVOD : 0);
    unsigned open = (DT_FRAMEWORK_MPI | DT_FRAMEWORK_HOROVOD) &
                    ~(recognised | g->start.frameworks | g->host->warned_unserved);
    uint32_t n = g->start.ranks.n;
    pid_t *pids;

    if (g->start.np == 1 || g->start.node_rank != 0 || !open)
        return;
    pids = dt_xcalloc(n, sizeof *pids);
    for (uint32_t i = 0; i < n; i++)
        pids[i] = g->processes[i].spawned.pid;
    g->procscan = dt_procscan_create(g->host->loop, pids, n, open, on_found, g);
    free(pids);
}

void dt_unservednews_end(struct dt_generation *g)
{
    dt_procscan_destroy(g->procscan);
    g->procscan = NULL;
}
