/* A control group (version 2) for the ranks of one START: everything in it can be killed in one
 * step, whatever it forks meanwhile, and is still found when the agent's processes have been killed
 * with no time to sweep. It sits below the agent's own group, where that is writable; where it is
 * not, the sweep by descent does without. No controller is in force in it, so that the ranks have
 * what they would have had. */
#ifndef DT_AGENT_CGROUP_H
#define DT_AGENT_CGROUP_H

#include <sys/types.h>

enum { DT_CGROUP_PATH = 4096 };

/* Makes the group and writes its directory to path (of DT_CGROUP_PATH bytes), "" where there can be
 * none. Returns a descriptor of it, or -1. As long as that is open the group is not taken for a
 * dead agent's. */
int dt_cgroup_make(char *path, const char *job_id);
/* fork, with the child in the group; as fork does where that is not possible, or group is -1. The
 * caller has one thread. Not after dt_cgroup_kill: some kernels then kill what is forked, too. */
pid_t dt_cgroup_fork(int group);
void dt_cgroup_kill(const char *path); /* everything in it, by SIGKILL; "": nothing */
/* Removes it once everything in it has ended, which it waits for for a moment, and clears path. */
void dt_cgroup_remove(char *path);

/* Ends what agents of this place left that were killed, with their groups. Blocks for a moment
 * where there is something to end. */
void dt_cgroup_end_orphans(void);

#endif
