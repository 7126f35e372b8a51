/* Ending every process below the caller. With the caller a subreaper, whatever its children left
 * behind (daemons, sessions of their own) is still below it: orphans become its children. */
#ifndef DT_AGENT_SWEEP_H
#define DT_AGENT_SWEEP_H

#include <stddef.h>
#include <sys/types.h>

/* Sends SIGKILL to every living descendant and returns how many there were; *example, unless NULL,
 * is one of them. 0 means that none is left; until then, call again: some may have just forked. */
size_t dt_sweep_kill(pid_t *example);

/* Kills and reaps until no descendant is left, or until the deadline: a process in an
 * uninterruptible wait cannot be ended. Blocks; for the end of keeper and worker. */
void dt_sweep_all(int timeout_ms);

#endif
