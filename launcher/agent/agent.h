/* The worker: the inner of the agent's two processes. It talks to the launcher over descriptors 0
 * and 1 and runs the generations that the launcher starts. */
#ifndef DT_AGENT_AGENT_H
#define DT_AGENT_AGENT_H

#include <stdbool.h>

#include "launcher/agent/keeper.h"

/* alone: the job has no other host, so no agent needs to connect to this one.
 *
 * Returns only if the worker cannot begin, and then the exit code. Otherwise, when the launcher
 * sends END, or when the launcher or the keeper is lost, the worker ends everything below it and
 * calls _exit. */
int dt_agent_work(struct dt_keeper *keeper, int keeper_fd, bool alone);

#endif
