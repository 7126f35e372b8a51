#include "launcher/remote/sruncommand.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/hosts/slurmgpus.h"

/* --unbuffered, because srun would otherwise hold back the end of the output. --overlap, because
 * otherwise the step would wait while another step runs on the node. --cpu-bind=none, because a
 * cluster may bind tasks to cores by default, and then all ranks of the node would share the one
 * core of this task. --export=ALL, because after `sbatch --export=NONE` the step would have no
 * PATH. */
static const char *const always[] = {
    "srun",         "--unbuffered",    "--quiet",       "--nodes=1",
    "--ntasks=1",   "--overlap",       "--mpi=none",    "--kill-on-bad-exit=0",
    "--export=ALL", "--cpu-bind=none", "--nodelist=%h",
};

static const char *const not_for_srun[] = {
    "SLURM_LABELIO",       "SLURM_STDINMODE", "SLURM_STDOUTMODE",
    "SLURM_STDERRMODE",    "SLURM_EXCLUSIVE", "SLURM_GPU_BIND",
    "SLURM_GPUS_PER_NODE", "SLURM_TRES_BIND", NULL,
};

/* With --gpus, Slurm 23.11 lets the step of a node wait for ever if the job has more GPUs than that
 * on the nodes before it. Slurm 22.05 refuses --gpus-per-node if another node of the job has fewer
 * GPUs. */
void dt_srun_words(struct dt_strs *words, const struct dt_host *host)
{
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        dt_xstrs_add(words, always[i]);
    if (host->step_gpus) {
        char *gpus = dt_xasprintf("%s=%s", host->has_fewest_gpus ? "--gpus-per-node" : "--gpus",
                                  host->step_gpus);

        dt_xstrs_add(words, gpus);
        free(gpus);
    }
}

static bool is_in(const char *const *names, const char *entry)
{
    size_t n = strcspn(entry, "=");

    for (; *names; names++) {
        if (strncmp(*names, entry, n) == 0 && !(*names)[n])
            return true;
    }
    return false;
}

void dt_srun_env(struct dt_strs *env, char *const *own)
{
    for (; *own; own++) {
        if (!is_in(not_for_srun, *own) && !is_in(dti_slurmgpus_options, *own))
            dt_xstrs_add(env, *own);
    }
}
