/* Whether the kernel killed a process of this host for memory: a count that the agent's memory
 * cgroup keeps, where it may be read. */
#ifndef DT_AGENT_OOM_H
#define DT_AGENT_OOM_H

#include <stdbool.h>
#include <stdint.h>

struct dt_oom {
    char path[512]; /* the file with the count; "": there is none */
    uint64_t seen;  /* kills accounted for */
};

void dt_oom_init(struct dt_oom *oom);
/* To be asked for each rank that died by SIGKILL: true when the kernel has killed one more process
 * for memory than was known; that one is then accounted for. */
bool dt_oom_killed(struct dt_oom *oom);

#endif
