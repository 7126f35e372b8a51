/* The command that runs an agent on a node of a Slurm allocation. Pure.
 *
 * Each node gets one step, which must have everything that the job has on that node. srun reads
 * many of its options from variables, including those that salloc and sbatch set for the whole job.
 * They must not change the step, or add anything to its streams. */
#ifndef DT_REMOTE_SRUNCOMMAND_H
#define DT_REMOTE_SRUNCOMMAND_H

#include "launcher/hosts/hostlist.h"

/* Lists the words before "sh -c COMMAND". dt_rsh_argv replaces %h in them with the host's name. */
void dt_srun_words(struct dt_strs *words, const struct dt_host *host);

/* Makes srun's environment from this process's own. */
void dt_srun_env(struct dt_strs *env, char *const *own);

#endif
