/* What the kernel reports about a process in /proc/PID/stat, and about a thread below it. */
#ifndef DT_AGENT_SWEEP_PROCSTAT_H
#define DT_AGENT_SWEEP_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dt_procstat {
    pid_t parent;
    pid_t group;
    char state;       /* of the thread, or the main thread, as in proc(5) */
    bool living;      /* not a zombie, or a zombie whose threads still run */
    bool stopped;     /* by a signal */
    bool asleep;      /* the thread (or main thread) has ended or sleeps */
    long threads;     /* of the process */
    bool dying;       /* is exiting: it may have closed its files already */
    uint64_t started; /* clock ticks since boot; distinguishes it from a later process with the same
                         id */
};

/* Returns false if there is no such process. */
bool dt_procstat_read(struct dt_procstat *p, pid_t pid);

typedef bool (*dt_procstat_thread_f)(const struct dt_procstat *thread);
/* Returns whether that holds for some thread of the process. */
bool dt_procstat_any_thread(pid_t pid, dt_procstat_thread_f is);

#endif
