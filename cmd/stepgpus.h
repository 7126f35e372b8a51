/* Asks Slurm how many GPUs a step on each node is to be given, where srun cannot know. */
#ifndef DT_CMD_STEPGPUS_H
#define DT_CMD_STEPGPUS_H

#include "launcher/hosts/hostlist.h"

/* Inside a Slurm job whose options count GPUs otherwise than by node (launcher/hosts/slurmgpus.h):
 * runs scontrol, and sets step_gpus of the hosts that it tells of. */
void dt_stepgpus_ask(struct dt_hostlist *hosts);

#endif
