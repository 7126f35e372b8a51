/* The outer of the agent's two processes. The keeper does not know the protocol. It is the
 * subreaper above the worker, so it inherits what a dead worker leaves behind, and it exits when no
 * process is left.
 *
 * If one of the two dies, the other ends every process below it. */
#ifndef DT_AGENT_KEEPER_H
#define DT_AGENT_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/agent/mpi/pmixhelper.h"
#include "launcher/agent/ranks/cgroup.h"
#include "launcher/agent/sweep/sweep.h"

enum {
    /* Time for the worker to end everything after dtrun has closed the channel. */
    DT_KEEPER_ALONE_MS = 1000,
    /* Maximum time to wait for processes that do not die. */
    DT_KEEPER_SWEEP_MS = 30 * 1000,
};

struct dt_keeper { /* memory that keeper and worker share */
    uint32_t lease_ms;
    /* a pidfd of the keeper, which the worker has as well; -1: the kernel has no pidfds */
    int self;
    char file_dir[4096];         /* to remove at the end; "": none */
    char mpi_dir[DT_PMIX_DIR];   /* directory of MPI, to remove at the end; "": none */
    char cgroup[DT_CGROUP_PATH]; /* of the ranks, to kill and remove; "": none */
    struct dt_groups groups;     /* of the ranks, to kill if there is no /proc */
};

/* Forks the worker, which runs work(keeper, fd) and exits with its result. fd is the worker's end
 * of a socket: writing a byte to it is a sign of life, and EOF on it is the death of the keeper.
 * Returns the exit code once the worker and every process below it are gone. */
int dt_keeper_run(uint32_t lease_ms, int (*work)(struct dt_keeper *keeper, int fd));

/* For the worker: kills the keeper, but never another process that has its id by now. */
void dt_keeper_kill(const struct dt_keeper *keeper);

/* Ends every process below the caller, and removes the pushed files, MPI's directory and the ranks'
 * cgroup. Waits at most timeout_ms for processes that do not die. Returns false if processes are
 * left that it cannot find without /proc. */
bool dt_keeper_end_all(struct dt_keeper *keeper, int timeout_ms);

#endif
