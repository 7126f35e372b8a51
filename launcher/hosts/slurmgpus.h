/* The GPUs that a Slurm job has on each node. Pure.
 *
 * A step gets all of the job's GPUs on its nodes only if the job asked for a number on each node
 * (--gres, --gpus-per-node). Slurm applies the other options to a step as if it were the whole job:
 * with --gpus=8 on two nodes, a step on one node would need eight GPUs; with --gpus-per-task=1, a
 * step of one task gets one. For such a job, dtrun must tell each step its number of GPUs. */
#ifndef DT_HOSTS_SLURMGPUS_H
#define DT_HOSTS_SLURMGPUS_H

#include "launcher/hosts/hostlist.h"

/* The variables with which salloc and sbatch pass those options on to srun; ends with NULL. */
extern const char *const dti_slurmgpus_options[];

/* Sets step_gpus and has_fewest_gpus of each host that text, the output of `scontrol show job
 * --details`, describes. A version of Slurm that does not list GPUs by node leaves step_gpus as it
 * is. */
void dt_slurmgpus_parse(struct dt_hostlist *hosts, const char *text);

#endif
