#include "launcher/agent/resources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "launcher/agent/generationstate.h"
#include "launcher/agent/savedir.h"
#include "launcher/agent/topology.h"
#include "launcher/base/ckptdir.h"
#include "launcher/base/mem.h"
#include "launcher/place/gpu.h"

enum {
    RANKS_MAX = 32 * 1024,
    FILES_PER_RANK = 5, /* two sockets, of which one is closed after the fork; three pipe ends */
    FILES_BESIDE = 48,
};

/* Somebody has listed the devices, and there are fewer than ranks. Where there are more ranks than
 * slots the launcher has said so. */
static void warn_of_shared_devices(struct dt_generation *g, const struct dt_gpu_source *source)
{
    uint32_t ranks = g->start.ranks.n, devices = g->config.devices.n;
    char *text;

    if (g->start.generation > 1 || source->bind != DT_GPU_BIND_RANK || devices == 0 ||
        ranks <= devices || ranks > source->slots || !(source->given || source->mask))
        return;
    text = dt_xasprintf("%u ranks share %u device%s (%s)", ranks, devices, devices == 1 ? "" : "s",
                        source->given ? "gpus= in the hostfile" : "CUDA_VISIBLE_DEVICES");
    dt_generation_log(g, text);
    free(text);
}

void dt_resources_devices(struct dt_generation *g)
{
    const struct dt_gpu_source source = {
        .bind = (enum dt_gpu_bind)g->start.gpu_bind,
        .given = g->start.gpus_given ? &g->start.gpus : NULL,
        .mask = getenv("CUDA_VISIBLE_DEVICES"),
        .detected = &g->host->gpus,
        .slots = g->start.slots,
    };

    dt_gpu_list(&g->config.devices, &source);
    warn_of_shared_devices(g, &source);
    g->config.has_mask = source.bind != DT_GPU_BIND_NONE || source.mask;
}

void dt_resources_cpus(struct dt_generation *g)
{
    bool threads = g->start.bind_to == DT_BIND_HWTHREAD;
    uint32_t cores;
    char *text;

    g->config.cores = g->host->cores;
    if (g->start.bind_to == DT_BIND_NONE)
        return;
    dt_topology_read(&g->config.cpus, "");
    cores = threads ? g->config.cpus.n : dt_cpus_cores(&g->config.cpus);
    if (g->start.generation > 1 || g->start.ranks.n <= cores)
        return;
    text = dt_xasprintf("%u ranks are bound to %u %s%s: some share one", g->start.ranks.n, cores,
                        threads ? "hardware thread" : "core", cores == 1 ? "" : "s");
    dt_generation_log(g, text);
    free(text);
}

/* What ranks share grows with the square of their number. */
static bool fits_memory(struct dt_generation *g)
{
    char what[128];

    if (g->start.ranks.n <= RANKS_MAX)
        return true;
    snprintf(what, sizeof what, "%u ranks are more than the %d that a host may have",
             g->start.ranks.n, RANKS_MAX);
    dt_generation_refuse(g, DT_SPAWN_SYSTEM, 0, what);
    return false;
}

/* Said before the first of thousands of descriptors is opened, in numbers. */
static bool fits_file_limit(struct dt_generation *g)
{
    uint64_t need = (uint64_t)g->config.numbers.n * FILES_PER_RANK + FILES_BESIDE;
    char what[128];
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return true;
    snprintf(what, sizeof what, "%u processes need %llu open files, and %llu are allowed",
             g->config.numbers.n, (unsigned long long)need, (unsigned long long)limit.rlim_cur);
    dt_generation_refuse(g, DT_SPAWN_SYSTEM, EMFILE, what);
    return false;
}

static bool can_save(struct dt_generation *g)
{
    char at[PATH_MAX];
    char *dir = g->start.checkpoint_dir;
    int error = g->start.check_checkpoint_dir ? dt_savedir_check(dir, at) : 0;

    if (!error && g->start.check_checkpoint_dir == DT_CHECKPOINT_UNUSED && dt_ckptdir_is_used(dir))
        error = EEXIST;
    if (error)
        dt_generation_refuse(g, DT_SPAWN_CHECKPOINT, error, dir);
    return !error;
}

bool dt_resources_suffice(struct dt_generation *g)
{
    return fits_memory(g) && fits_file_limit(g) && can_save(g);
}
