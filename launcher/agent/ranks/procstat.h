/* What the kernel tells about a process in /proc/PID/stat. */
#ifndef DT_AGENT_PROCSTAT_H
#define DT_AGENT_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dt_procstat {
    pid_t parent;
    bool living;      /* no zombie, or one with threads */
    bool stopped;     /* by a signal */
    bool dying;       /* on its way to being reaped: it may have closed its files already */
    uint64_t started; /* clock ticks since boot: tells it from a later process of the same id */
};

/* Returns false when there is no such process. */
bool dt_procstat_read(struct dt_procstat *p, pid_t pid);

#endif
