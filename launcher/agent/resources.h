/* What the processes of a generation get from their host: devices, CPUs, open files, a directory
 * for checkpoints. */
#ifndef DT_AGENT_RESOURCES_H
#define DT_AGENT_RESOURCES_H

#include <stdbool.h>

#include "runtime/wire/msg.h"

struct dt_generation;

/* Choose the devices and, with --bind-to, the CPUs of the ranks, and warn the user if ranks share
 * one. */
void dt_resources_devices(struct dt_generation *g);
void dt_resources_cpus(struct dt_generation *g);

struct dt_lack { /* as in SPAWN_FAILED */
    enum dt_spawn_step step;
    int error;
    char *what; /* the caller frees it */
};

/* Returns whether the host has enough of everything else. If not, *lack says what is missing. */
bool dt_resources_suffice(const struct dt_generation *g, struct dt_lack *lack);

#endif
