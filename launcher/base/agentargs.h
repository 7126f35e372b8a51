/* The arguments with which dtrun starts an agent. */
#ifndef DT_BASE_AGENTARGS_H
#define DT_BASE_AGENTARGS_H

/* The job has one host: no other agent will connect, so this one does not listen. */
#define DT_AGENT_ALONE "--alone"

/* Followed by the limit of open files that dtrun was started with. dtrun raises its own limit,
 * which a local agent inherits; the ranks must get the original one. */
#define DT_AGENT_OPEN_FILES "--open-files="

#endif
