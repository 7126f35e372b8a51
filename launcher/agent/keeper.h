/* The outer of the agent's two processes. The keeper knows no protocol. It is the subreaper above
 * the worker, so that what a dead worker leaves behind becomes its own, and ends when nothing is
 * left.
 *
 * Whichever of the two dies, the other one ends every process below it. */
#ifndef DT_AGENT_KEEPER_H
#define DT_AGENT_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/agent/mpi/pmixhelper.h"
#include "launcher/agent/ranks/cgroup.h"
#include "launcher/agent/sweep/sweep.h"

enum {
    DT_KEEPER_ALONE_MS = 1000, /* for the worker to end all, once dtrun has closed the channel */
    DT_KEEPER_SWEEP_MS = 30 * 1000 /* at most so long for processes that do not die */
};

struct dt_keeper { /* shared memory of keeper and worker */
    uint32_t lease_ms;
    int self; /* a pidfd of the keeper, which the worker has, too; -1: the kernel has none */
    char file_dir[4096];         /* to remove at the end; "": none */
    char mpi_dir[DT_PMIX_DIR];   /* likewise, of MPI */
    char cgroup[DT_CGROUP_PATH]; /* of the ranks, to end and remove; "": none */
    struct dt_groups groups;     /* likewise, to end where there is no /proc */
};

/* Forks the worker, which runs work(keeper, fd) and ends with its result; fd is the worker's end of
 * a socket: a byte written to it is a sign of life, its EOF is the death of the keeper. Returns the
 * code to exit with once the worker and every process below it are gone. */
int dt_keeper_run(uint32_t lease_ms, int (*work)(struct dt_keeper *keeper, int fd));

/* For the worker: kills the keeper, and no other process that has its id by now. */
void dt_keeper_kill(const struct dt_keeper *keeper);

/* Ends every process below the caller, waiting at most so long for those that do not die, and
 * removes the pushed files and the ranks' control group. Returns false when processes are left that
 * it cannot find without /proc. */
bool dt_keeper_end_all(struct dt_keeper *keeper, int timeout_ms);

#endif
