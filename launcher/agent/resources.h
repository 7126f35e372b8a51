/* What the processes of a generation get of their host: devices, CPUs, open files, a directory for
 * checkpoints. */
#ifndef DT_AGENT_RESOURCES_H
#define DT_AGENT_RESOURCES_H

#include <stdbool.h>

struct dt_generation;

/* Which devices, and with --bind-to which CPUs, its ranks share; the user is told where some have
 * one in common. */
void dt_resources_devices(struct dt_generation *g);
void dt_resources_cpus(struct dt_generation *g);

/* Whether there is enough of the rest; otherwise the generation is refused. */
bool dt_resources_suffice(struct dt_generation *g);

#endif
