/* The command that runs an agent on a node of a Slurm allocation. Pure.
 *
 * One step for each node, which is to have all that the job has there. srun takes many of its
 * options from variables, also from those that salloc and sbatch set for the job as a whole; they
 * must not change the step, or mix anything into its streams. */
#ifndef DT_REMOTE_SRUNCOMMAND_H
#define DT_REMOTE_SRUNCOMMAND_H

#include "launcher/hosts/hostlist.h"

/* The words before "sh -c COMMAND", with host's name as dt_rsh_argv fills it in. */
void dt_srun_words(struct dt_strs *words, const struct dt_host *host);

/* Adds what srun's environment is to be, from this process's. */
void dt_srun_env(struct dt_strs *env, char *const *own);

#endif
