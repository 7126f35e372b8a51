/* The GPUs that a Slurm job has on each node. Pure.
 *
 * A step gets all of the job's GPUs on its nodes only where the job asked for a number on each node
 * (--gres, --gpus-per-node). The other options count for the step as if it were the whole job: of
 * --gpus=8 on two nodes, a step of one node would have to get eight, and of --gpus-per-task=1, a
 * step of one task gets one. Such a step must be told how many GPUs there are. */
#ifndef DT_HOSTS_SLURMGPUS_H
#define DT_HOSTS_SLURMGPUS_H

#include "launcher/hosts/hostlist.h"

/* The variables by which salloc and sbatch pass those options on to srun, and NULL. */
extern const char *const dti_slurmgpus_options[];

/* Sets step_gpus of each host that text, the output of `scontrol show job --details`, describes.
 * Versions of Slurm that do not list GPUs by node leave it as it is. */
void dt_slurmgpus_parse(struct dt_hostlist *hosts, const char *text);

#endif
