/* Sends a signal to the process group of a rank.
 *
 * Programs start workers, such as those of PyTorch's DataLoader. A worker that dies of SIGTERM
 * makes its program fail that has just begun to save. So if a program handles the signal, its
 * workers do not get it: they are the processes of the group below it that run the same executable.
 * They get it once the program has ended. A shell has no workers. Even if it has a trap, it first
 * waits for the command that it runs. */
#ifndef DT_AGENT_SWEEP_GROUPSIGNAL_H
#define DT_AGENT_SWEEP_GROUPSIGNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/agent/sweep/proclist.h"

/* Returns whether workers do not get this signal. They do get SIGINT, as on a terminal. */
bool dt_groupsignal_spares(int signo);

struct dt_groupsignal_workers { /* that have not got a signal; zero-initialised */
    struct dt_groupsignal_worker {
        struct dt_proclist_process worker, program;
    } * v;
    size_t n;
};

/* all: the processes of this host, for a signal that workers do not get; if it is empty, the whole
 * group gets the signal. Adds the workers that did not get it to spared. Returns false if there is
 * no such group. */
bool dt_groupsignal_send(const struct dt_proclist *all, pid_t group, int signo,
                         struct dt_groupsignal_workers *spared);
/* Sends the signal to those whose program has ended since, and removes them. */
void dt_groupsignal_orphans(struct dt_groupsignal_workers *spared, int signo);
void dt_groupsignal_free(struct dt_groupsignal_workers *spared);

#endif
