/* The arguments with which dtrun starts an agent. */
#ifndef DT_BASE_AGENTARGS_H
#define DT_BASE_AGENTARGS_H

/* The job has one host: no other agent will connect, so this one does not listen. */
#define DT_AGENT_ALONE "--alone"

/* Followed by the limit of open files that dtrun was started with. A local agent inherits the one
 * to which dtrun has raised its own, but its ranks must not. */
#define DT_AGENT_OPEN_FILES "--open-files="

#endif
