/* Whether an ancestor of this process is a rank, which keeps its socket from what it starts. */
#ifndef DT_WORLD_PARENTRANK_H
#define DT_WORLD_PARENTRANK_H

#include <sys/types.h>

/* The nearest ancestor below dtrun-agent that has called dt_init: it has a socket as descriptor fd,
 * marked close-on-exec. 0: none was found. */
pid_t dt_parentrank_find(int fd);

#endif
