/* The worker: the inner of the agent's two processes. It speaks with the launcher over descriptors
 * 0 and 1 and runs the generations it is told to. */
#ifndef DT_AGENT_AGENT_H
#define DT_AGENT_AGENT_H

#include <stdbool.h>

#include "launcher/agent/keeper.h"

/* alone: the job has no other host, so that nobody needs to connect to this agent.
 *
 * Returns the code to exit with, when the launcher says END; a launcher that is gone, or a keeper
 * that is, ends the process at once with everything below it. */
int dt_agent_work(struct dt_keeper *keeper, int keeper_fd, bool alone);

#endif
