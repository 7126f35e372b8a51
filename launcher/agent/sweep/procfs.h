/* Whether /proc shows the processes that this one can name. */
#ifndef DT_AGENT_SWEEP_PROCFS_H
#define DT_AGENT_SWEEP_PROCFS_H

#include <stdbool.h>

/* Returns false if /proc is not mounted, or is that of another PID namespace, as after 'unshare
 * --pid' without '--mount-proc': its numbers belong to other processes than those that kill()
 * reaches. */
bool dt_procfs_is_ours(void);

#endif
