/* The outer of the agent's two processes. The keeper does not know the protocol. It is the
 * subreaper above the worker, so it inherits what a dead worker leaves behind, and it exits when no
 * process is left.
 *
 * If one of the two dies, the other ends every process below it. */
#ifndef DT_AGENT_KEEPER_H
#define DT_AGENT_KEEPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/agent/mpi/pmixhelper.h"
#include "launcher/agent/ranks/cgroup.h"
#include "launcher/agent/sweep/sweep.h"

enum {
    /* How long the worker may be silent after dtrun has closed the channel. */
    DT_KEEPER_CLOSED_MS = 1000,
    /* How long after the end of the lease the worker must have stopped or killed the ranks. dtrun
     * waits for longer before it starts ranks elsewhere. */
    DT_KEEPER_LEASE_MARGIN_MS = 250,
    /* Maximum time to wait for processes that do not die. */
    DT_KEEPER_SWEEP_MS = 30 * 1000,
};

struct dt_keeper { /* memory that keeper and worker share */
    _Atomic uint32_t lease_ms;
    _Atomic uint64_t launcher_heard_ns; /* the lease began then; 0: it cannot end now */
    /* a pidfd of the keeper, the same descriptor in both processes; -1: the kernel has no pidfds */
    int self;
    char file_dir[4096];         /* to remove at the end; "": none */
    char mpi_dir[DT_PMIX_DIR];   /* directory of MPI, to remove at the end; "": none */
    char cgroup[DT_CGROUP_PATH]; /* of the ranks, to kill and remove; "": none */
    struct dt_groups groups;     /* process groups of the ranks, to kill if there is no /proc */
};

/* Forks the worker, and returns in both processes. In the worker it returns what work(keeper, fd)
 * has returned. fd is the worker's end of a socket: writing a byte to it is a sign of life, and EOF
 * on it is the death of the keeper. In the keeper it returns the agent's exit code, once the worker
 * and every process below it are gone. */
int dt_keeper_run(uint32_t lease_ms, int (*work)(struct dt_keeper *keeper, int fd));

/* For the worker: kills the keeper, but never another process that has its id by now. */
void dt_keeper_kill(const struct dt_keeper *keeper);

/* Ends every process below the caller, and removes the pushed files, MPI's directory and the ranks'
 * cgroup. Waits at most timeout_ms for processes that do not die. Returns false if processes may be
 * left because there is no /proc to find them in. */
bool dt_keeper_end_all(struct dt_keeper *keeper, int timeout_ms);

#endif
