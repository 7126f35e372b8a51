/* What the control groups of this process leave it of the machine: containers and batch systems
 * give a part of it. */
#ifndef DT_AGENT_LIMITS_H
#define DT_AGENT_LIMITS_H

#include <stdint.h>

struct dt_limits {
    uint32_t cpu;    /* hundredths of a core; 0: no limit */
    uint64_t memory; /* bytes; 0: no limit */
};

/* The narrowest of the own group and those above it, of either version. root: "", or a directory
 * that stands for / (tests). What cannot be read is no limit. */
void dt_limits_read(struct dt_limits *limits, const char *root);

/* Which control group refuses this many more processes, if one does: "the cgroup DIR allows N
 * processes and threads (pids.max)". NULL: none does. The caller frees it. */
char *dt_limits_tasks(const char *root, uint32_t wanted);

#endif
