/* A control group (version 2) for the ranks of one START. Everything in it can be killed in one
 * step, even while it forks, and can be found after the agent's processes were killed without time
 * for a sweep. It lies below the agent's own group. If that is not writable, only the sweep by
 * descent finds the processes. The group has no controllers, so the ranks get the same resources as
 * without it. */
#ifndef DT_AGENT_RANKS_CGROUP_H
#define DT_AGENT_RANKS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { DT_CGROUP_PATH = 4096 };

/* Creates the group and writes its directory to path (of DT_CGROUP_PATH bytes), or "" if that is
 * not possible. Returns a descriptor of it, or -1. While that is open, other agents do not mistake
 * the group for a dead agent's. */
int dt_cgroup_make(char *path, const char *job_id);
void dt_cgroup_kill(const char *path); /* kills everything in it with SIGKILL; "": nothing */
/* Removes the group, with those that ranks have made in it (a dtrun that a rank started makes one),
 * and clears path. Returns false if something in it has not ended yet: call it again. Neither this
 * function nor the next one waits for that, because the time that a process takes to end, and that
 * a nap takes on a busy host, has no bound. */
bool dt_cgroup_remove(char *path);

/* Kills what dead agents left behind in this place, and removes their groups. Returns how many
 * groups could not be removed yet. */
size_t dt_cgroup_end_orphans(void);

#endif
