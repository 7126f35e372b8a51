/* The processes of this host, as /proc lists them. */
#ifndef DT_AGENT_SWEEP_PROCLIST_H
#define DT_AGENT_SWEEP_PROCLIST_H

#include <stddef.h>
#include <sys/types.h>

#include "launcher/agent/sweep/procstat.h"

struct dt_proclist_process {
    pid_t pid;
    struct dt_procstat stat;
};

struct dt_proclist {               /* zero-initialised */
    struct dt_proclist_process *v; /* by pid */
    size_t n;
    size_t cap;
};

/* Leaves the list empty if /proc cannot be read. The list is not a snapshot, because processes come
 * and go while it is read. Calls alive, unless it is NULL, after each process: on a busy host all
 * of them together take seconds. */
void dt_proclist_read(struct dt_proclist *list, void (*alive)(void *arg), void *arg);
void dt_proclist_free(struct dt_proclist *list);

void dt_proclist_add(struct dt_proclist *list, const struct dt_proclist_process *p);

/* Returns NULL if the list does not have the process. */
const struct dt_proclist_process *dt_proclist_find(const struct dt_proclist *list, pid_t pid);

/* Returns the child of top that is p or has p among its descendants, or 0 if p is not below top. */
pid_t dt_proclist_branch(const struct dt_proclist *list, const struct dt_proclist_process *p,
                         pid_t top);

#endif
