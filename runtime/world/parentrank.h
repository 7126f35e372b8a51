/* Finds out why this process has no socket to its agent: a rank may have started it. Ranks do not
 * pass their sockets on to the programs that they start. */
#ifndef DT_WORLD_PARENTRANK_H
#define DT_WORLD_PARENTRANK_H

#include <sys/types.h>

/* Returns the nearest ancestor below dtrun-agent that has called dt_init, or 0. It is recognised by
 * its descriptor fd, a socket with close-on-exec, which dt_init sets. */
pid_t dt_parentrank_find(int fd);

#endif
