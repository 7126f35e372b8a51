/* Public calls that need no communicator: rank and size, dt_step, and the flight recorder. */
#include <stdatomic.h>

#include "runtime/api/context.h"
#include "runtime/diag/dump.h"

void dt_version(int *major, int *minor, int *patch)
{
    if (major)
        *major = DT_VERSION_MAJOR;
    if (minor)
        *minor = DT_VERSION_MINOR;
    if (patch)
        *patch = DT_VERSION_PATCH;
}

int dt_rank(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : dti_context.job.rank;
}

int dt_size(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : dti_context.job.size;
}

int dt_local_rank(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : dti_context.job.local_rank;
}

int dt_local_size(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : dti_context.job.local_size;
}

int dt_node(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : (int)dti_context.job.node;
}

int dt_nodes(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : (int)dti_context.job.nodes;
}

int dt_generation(void)
{
    return dti_context.state == DT_CONTEXT_BEFORE ? -1 : (int)dti_context.job.generation;
}

static void note_step(int64_t step)
{
    struct dt_world *w = &dti_context.job;
    struct dt_hostshm_rank *me = &w->shm.ranks[w->local_rank];
    int64_t watched;

    atomic_store_explicit(&me->step, step, memory_order_relaxed);
    watched = atomic_load_explicit(&me->watch_step, memory_order_relaxed);
    if (step >= watched && watched != DT_HOSTSHM_NO_STEP)
        dt_agentlink_hold(&w->agent, step);
}

void dt_step(int64_t step)
{
    if (dti_context.forked)
        return;
    if (dt_context_hold_job())
        note_step(step);
    dt_context_release_job();
}

dt_result_t dt_recorder_dump(const char *path)
{
    const struct dt_world *w;
    dt_result_t r = dt_context_world("dt_recorder_dump", &w);

    return r == DT_OK ? dt_dump_now(w, path) : r;
}
