#include "runtime/world/agentenv.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/error.h"
#include "runtime/wire/env.h"
#include "runtime/world/config.h"

static bool number(const char *name, uint32_t *out)
{
    const char *text = getenv(name);
    char *end;
    unsigned long v;

    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    v = strtoul(text, &end, 10);
    if (errno || *end || v > INT_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

/* ---- started by another launcher ---- */

/* mpirun and mpiexec may start their daemons with srun, so srun comes last. sbatch and salloc set
 * SLURM_NTASKS for the whole allocation; it says nothing about one process. */
static const struct launcher {
    const char *name;
    const char *size; /* the variable with the number of processes */
    const char *rank; /* the variable with the rank of this one */
    const char *also; /* a variable that must also be set; NULL: none */
} launchers[] = {
    { "Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL },
    { "mpiexec", "PMI_SIZE", "PMI_RANK", NULL },
    { "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_ID" },
};

enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static bool started_by(const struct launcher *l, uint32_t *rank, uint32_t *size)
{
    return number(l->size, size) && number(l->rank, rank) && *size > 1 &&
           (!l->also || getenv(l->also));
}

/* Without this check each process would train alone and overwrite the others' results. */
static dt_result_t check_launcher(void)
{
    uint32_t rank, size;

    for (int i = 0; i < LAUNCHERS; i++) {
        const struct launcher *l = &launchers[i];

        if (started_by(l, &rank, &size))
            return dt_fail(DT_ERR_STATE,
                           "dt_init: %s started this process as number %u of %u (%s), but only "
                           "dtrun makes them one job: start the program with 'dtrun -np %u "
                           "PROGRAM'; or set %s=1 to make each process a job of one rank",
                           l->name, rank, size, l->size, size, DT_ENV_ALONE);
    }
    return DT_OK;
}

/* ---- all of it ---- */

dt_result_t dt_agentenv_read(struct dt_agentenv *env)
{
    uint32_t fd;
    bool alone;
    dt_result_t r = dt_config_switch(DT_ENV_ALONE, false, &alone);

    *env = (struct dt_agentenv){ .fd = -1 };
    if (r != DT_OK || alone)
        return r;
    if (!getenv(DT_ENV_RANK) && !getenv(DT_ENV_AGENT_FD))
        return check_launcher();
    if (!number(DT_ENV_AGENT_FD, &fd) || !number(DT_ENV_RANK, &env->rank) ||
        !number(DT_ENV_SIZE, &env->size) || !number(DT_ENV_LOCAL_RANK, &env->local_rank) ||
        !number(DT_ENV_NODES, &env->nodes) || !number(DT_ENV_GENERATION, &env->generation))
        return dt_fail(DT_ERR_IO,
                       "dtrun's variables have been changed between dtrun and the program: %s, %s, "
                       "%s, %s, %s and %s must all be there and be numbers, or none of them",
                       DT_ENV_RANK, DT_ENV_SIZE, DT_ENV_LOCAL_RANK, DT_ENV_NODES, DT_ENV_GENERATION,
                       DT_ENV_AGENT_FD);
    env->fd = (int)fd;
    return DT_OK;
}
