/* What the processes of a generation get of their host: devices, CPUs, open files, a directory for
 * checkpoints. */
#ifndef DT_AGENT_RESOURCES_H
#define DT_AGENT_RESOURCES_H

#include <stdbool.h>

#include "runtime/wire/msg.h"

struct dt_generation;

/* Which devices, and with --bind-to which CPUs, its ranks share; the user is told where some have
 * one in common. */
void dt_resources_devices(struct dt_generation *g);
void dt_resources_cpus(struct dt_generation *g);

struct dt_lack { /* as in SPAWN_FAILED */
    enum dt_spawn_step step;
    int error;
    char *what; /* to be freed */
};

/* Whether there is enough of the rest; otherwise *lack says of what there is not. */
bool dt_resources_suffice(const struct dt_generation *g, struct dt_lack *lack);

#endif
