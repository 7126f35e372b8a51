/* The limits of this process's control groups: containers and batch systems grant only a part of
 * the machine. */
#ifndef DT_BASE_GRANTED_LIMITS_H
#define DT_BASE_GRANTED_LIMITS_H

#include <stdint.h>

struct dt_limits {
    uint32_t cpu;    /* hundredths of a core; 0: no limit */
    uint64_t memory; /* bytes; 0: no limit */
};

/* Reads the lowest limits of this process's group and of the groups above it, whether the host has
 * cgroups of version 1 or 2. root is "", or a directory that stands for / in tests. What cannot be
 * read counts as no limit. */
void dt_limits_read(struct dt_limits *limits, const char *root);

/* Returns how many CPUs the processes of this group may keep busy: those of this process's affinity
 * mask, or fewer if control groups limit CPU time, rounded up. */
uint32_t dt_limits_cpus(const char *root);

/* If a control group does not allow this many more processes and threads, returns a text that says
 * so: "the cgroup DIR allows N processes and threads (pids.max)". Otherwise returns NULL. The
 * caller frees the text. */
char *dt_limits_tasks(const char *root, uint32_t wanted);

#endif
