/* Ends every process below the caller. The caller is a subreaper, so everything that its children
 * left behind (daemons, sessions of their own) is still below it: orphans become its children.
 *
 * Descendants are found in /proc. If that is not mounted, only those are found that have stayed in
 * the process group of their rank. */
#ifndef DT_AGENT_SWEEP_SWEEP_H
#define DT_AGENT_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/agent/sweep/leftovers.h"

enum { DT_SWEEP_GROUPS = 64 * 1024, DT_SWEEP_ABANDONED = 8 };

struct dt_groups { /* the process groups of a generation's ranks */
    uint32_t n;
    pid_t v[DT_SWEEP_GROUPS];
    /* Processes of the agent's own that it has killed and does not wait for. */
    uint32_t nabandoned;
    struct dt_abandoned {
        pid_t pid;
        uint64_t started; /* as in struct dt_procstat */
    } abandoned[DT_SWEEP_ABANDONED];
};

void dt_groups_add(struct dt_groups *groups, pid_t group); /* ignored when the list is full */

/* Returns whether the caller has a child, living or not reaped, in this process group. */
bool dt_groups_has_child(pid_t group);

/* From now on sweeps neither wait for this child of the caller nor count it. If the list is full,
 * they wait for it. */
void dt_groups_abandon(struct dt_groups *groups, pid_t pid);

/* Processes that mean to outlive the others, and to remove what these leave. */
enum dt_spared {
    DT_SPARE_NONE,
    /* PyTorch's torch_shm_manager, which removes shared memory two seconds after the last process
     * that uses it has ended */
    DT_SPARE_SHM_MANAGERS,
    /* these, and what ignores both SIGINT and SIGTERM, as the resource tracker of Python's
     * multiprocessing does */
    DT_SPARE_CARETAKERS,
};

/* Sends SIGKILL to every living descendant that it finds, except those to be spared, and returns
 * how many there were, with these; *example, unless NULL, is one of them, if possible one that can
 * be killed. 0 means that none is left; until then, call it again, because some may have just
 * forked. Without /proc it counts groups, and spares none. Calls alive, unless it is NULL, as
 * dt_proclist_read does. */
size_t dt_sweep_kill(const struct dt_groups *groups, enum dt_spared spared,
                     struct dt_leftover *example, void (*alive)(void *arg), void *arg);

/* Kills and reaps until no descendant is left, or for a second none that can be killed, or until
 * the deadline: a process in uninterruptible sleep cannot be ended. Blocks; keeper and worker call
 * it when they end. Returns false if processes may be left because there is no /proc to find them
 * in. */
bool dt_sweep_all(const struct dt_groups *groups, int timeout_ms);

#endif
