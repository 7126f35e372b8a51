/* Whether an ancestor of this process is a rank. A rank does not pass its socket on to the programs
 * that it starts. */
#ifndef DT_WORLD_PARENTRANK_H
#define DT_WORLD_PARENTRANK_H

#include <sys/types.h>

/* The nearest ancestor below dtrun-agent that has called dt_init: its descriptor fd is a socket
 * marked close-on-exec. 0: none was found. */
pid_t dt_parentrank_find(int fd);

#endif
