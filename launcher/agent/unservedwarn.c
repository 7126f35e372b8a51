#include "launcher/agent/unservedwarn.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

/* Of every MPI library. */
#define MPI_RESULT "every rank that calls MPI_Init is an MPI job of its own, of size 1"

static const struct library {
    unsigned id;
    const char *name, *lack, *result, *remedy;
} libraries[] = {
    { DT_LIBRARY_HOROVOD, "Horovod", "is not told where the other ranks are",
      "every rank that calls hvd.init() trains alone, as rank 0 of 1", "--env horovod tells them" },
    { DT_LIBRARY_OPENMPI, "Open MPI", "there is no PMIx server for it", MPI_RESULT,
      "--env mpi starts the server" },
    /* every rank's environment serves these */
    { DT_LIBRARY_MPICH, "MPI", NULL, MPI_RESULT, NULL },
    { DT_LIBRARY_DTRUN, "libdtrun", NULL,
      "every rank that calls dt_init is a job of its own, of size 1", NULL },
};

static const struct library *library_of(unsigned id)
{
    const struct library *l = libraries;

    while (l->id != id)
        l++;
    return l;
}

/* The option would not help a process that does not get the rank's environment. */
static char *warning(const struct dt_procscan_finding *f)
{
    const struct library *l = library_of(f->library);

    return dt_xasprintf("process %d has loaded %s (%s), but %s: %s; %s", (int)f->pid, l->name,
                        f->path, f->bare ? "has none of the rank's environment" : l->lack,
                        l->result,
                        f->bare ? "env -i, sudo and containers may remove it" : l->remedy);
}

static void on_found(void *arg, const struct dt_procscan_finding *finding)
{
    struct dt_generation *g = arg;
    char *what = warning(finding);

    g->host->warned_unserved |= finding->library;
    dt_generation_say(g, "rank %u (%s): %s", g->start.ranks.v[finding->local_rank], g->start.host,
                      what);
    free(what);
}

/* The agent serves MPICH and libdtrun in every job. */
static unsigned served(const struct dt_generation *g)
{
    return DT_LIBRARY_MPICH | DT_LIBRARY_DTRUN | (g->mpi_env.n ? DT_LIBRARY_OPENMPI : 0) |
           (g->rendezvous ? DT_LIBRARY_HOROVOD : 0);
}

/* Returns the libraries of which the user knows that they are not served. */
static unsigned announced(const struct dt_generation *g)
{
    unsigned recognised =
        (g->needs_pmix ? DT_LIBRARY_OPENMPI : 0) | (g->uses_horovod ? DT_LIBRARY_HOROVOD : 0);

    return (recognised & ~served(g)) | g->host->warned_unserved;
}

/* All ranks run the same program, so those of the first host show what it loads, and the user is
 * warned once. */
void dt_unservedwarn_begin(struct dt_generation *g)
{
    const unsigned all =
        DT_LIBRARY_HOROVOD | DT_LIBRARY_OPENMPI | DT_LIBRARY_MPICH | DT_LIBRARY_DTRUN;
    const struct dt_procscan_set set = { all & ~announced(g), served(g) };
    uint32_t n = g->start.ranks.n;
    pid_t *pids;

    if (g->start.np == 1 || g->start.node_rank != 0 || !set.libraries)
        return;
    pids = dt_xcalloc(n, sizeof *pids);
    for (uint32_t i = 0; i < n; i++)
        pids[i] = g->processes[i].spawned.pid;
    g->procscan = dt_procscan_create(g->host->loop, pids, n, set, on_found, g);
    free(pids);
}

void dt_unservedwarn_end(struct dt_generation *g)
{
    dt_procscan_destroy(g->procscan);
    g->procscan = NULL;
}
