/* The processes that /proc lists, and whether this one can name them. */
#ifndef DT_AGENT_SWEEP_PROCFS_H
#define DT_AGENT_SWEEP_PROCFS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

/* Returns false if /proc is not mounted, or is that of another PID namespace, as after 'unshare
 * --pid' without '--mount-proc': its numbers belong to other processes than those that kill()
 * reaches. */
bool dt_procfs_is_ours(void);

/* Returns the next process that the directory (/proc) lists, or thread (/proc/PID/task), or 0 at
 * the end. */
pid_t dt_procfs_next(DIR *dir);

/* Returns whether the process has children, or the kernel does not say. It takes far less time than
 * a look at all processes. */
bool dt_procfs_has_children(pid_t pid);

#endif
