/* Asks Slurm how many GPUs a step needs on each node, if srun cannot know. */
#ifndef DT_CMD_STEPGPUS_H
#define DT_CMD_STEPGPUS_H

#include "launcher/hosts/hostlist.h"

/* In a Slurm job whose options do not count GPUs by node (launcher/hosts/slurmgpus.h): runs
 * scontrol, and sets step_gpus of the hosts that it lists. */
void dt_stepgpus_ask(struct dt_hostlist *hosts);

#endif
