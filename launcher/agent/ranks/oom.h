/* Whether the kernel killed a process of this host for memory: a count that the agent's memory
 * cgroup keeps, where it may be read; else what the kernel logs, where that may be. */
#ifndef DT_AGENT_OOM_H
#define DT_AGENT_OOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { DT_OOM_PIDS = 64 };

struct dt_oom {
    char path[4096];         /* the file with the count; "": there is none */
    uint64_t seen;           /* kills accounted for */
    int log;                 /* the kernel's log, where there is no count; or -1 */
    pid_t pids[DT_OOM_PIDS]; /* that the log has named, the newest ones */
    unsigned npids;
};

void dt_oom_init(struct dt_oom *oom);
/* To be asked for each rank that died by SIGKILL: true when the kernel has killed one more process
 * for memory than was known, which is then accounted for, or has logged that it killed this one. */
bool dt_oom_killed(struct dt_oom *oom, pid_t pid);

#endif
