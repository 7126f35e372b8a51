/* Detects whether the kernel killed a process of this host because memory ran out: from the count
 * of the agent's memory cgroup, and from the kernel's log, as far as they are readable. The count
 * lacks a process that has moved itself into another cgroup. */
#ifndef DT_AGENT_RANKS_OOM_H
#define DT_AGENT_RANKS_OOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { DT_OOM_PIDS = 64 };

struct dt_oom {
    char path[4096];         /* the file with the count; "": there is none */
    uint64_t seen;           /* kills accounted for */
    int log;                 /* the kernel's log, or -1 */
    pid_t pids[DT_OOM_PIDS]; /* the newest that the log has named */
    unsigned npids;
};

void dt_oom_init(struct dt_oom *oom);
/* From now on only later kills count. */
void dt_oom_forget(struct dt_oom *oom);
/* Call this for each rank that died by SIGKILL. Returns true if the count shows a kill that was not
 * accounted for yet (it is from now on), or if the log says that the kernel killed this process. */
bool dt_oom_killed(struct dt_oom *oom, pid_t pid);
/* Whether the count shows a kill that was not accounted for yet: perhaps of a process that a rank
 * had started. */
bool dt_oom_killed_any(const struct dt_oom *oom);

#endif
