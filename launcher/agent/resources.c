#include "launcher/agent/resources.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "launcher/agent/facts/savedir.h"
#include "launcher/agent/facts/topology.h"
#include "launcher/agent/generationstate.h"
#include "launcher/base/ckptdir.h"
#include "launcher/base/granted/limits.h"
#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/place/envrules.h"
#include "launcher/place/gpu.h"

enum {
    RANKS_MAX = 32 * 1024, /* on one host: the memory that ranks share grows with their square */
    FILES_PER_RANK = 5,    /* three pipe ends and two sockets, one of which closes after the fork */
    FILES_OTHER = 48,      /* for everything else in the agent */
};

static const char mask[] = "CUDA_VISIBLE_DEVICES";

static const char *name_of(const struct dt_gpu_source *source)
{
    return source->given ? "gpus= in the hostfile" : source->mask ? mask : "SLURM_GPUS_ON_NODE";
}

/* CUDA shows no device to a rank whose device does not exist, and does not say why. */
static void warn_of_missing_device(struct dt_generation *g, const struct dt_gpu_source *source)
{
    uint32_t gpus = source->detected->n;
    long missing =
        source->given || source->mask ? dt_gpu_missing(&g->config.devices, source->detected) : -1;

    if (g->start.generation == 1 && source->bind != DT_GPU_BIND_NONE && missing >= 0)
        dt_generation_say(g, "there is no GPU %ld (%s): this host has %u GPU%s, from 0", missing,
                          name_of(source), gpus, gpus == 1 ? "" : "s");
}

/* Warns if the user or Slurm has said which devices to use (gpus=, CUDA_VISIBLE_DEVICES,
 * SLURM_GPUS_ON_NODE) and there are fewer than ranks. If there are more ranks than slots, the
 * launcher has warned already. */
static void warn_of_shared_devices(struct dt_generation *g, const struct dt_gpu_source *source)
{
    uint32_t ranks = g->start.ranks.n, devices = g->config.devices.n;

    if (g->start.generation > 1 || source->bind != DT_GPU_BIND_RANK || devices == 0 ||
        ranks <= devices || ranks > source->slots ||
        !(source->given || source->mask || source->granted))
        return;
    dt_generation_say(g, "%u ranks share %u device%s (%s)", ranks, devices, devices == 1 ? "" : "s",
                      name_of(source));
}

/* Returns how many GPUs Slurm has given to the step that the agent runs in, or 0 if it does not
 * say. */
static uint32_t granted_gpus(void)
{
    const char *text = getenv("SLURM_GPUS_ON_NODE");
    int n = 0;

    return text && dt_number_parse(text, 1, INT_MAX, &n, NULL) == 0 ? (uint32_t)n : 0;
}

void dt_resources_devices(struct dt_generation *g)
{
    enum dt_gpu_bind bind = (enum dt_gpu_bind)g->start.gpu_bind;
    const struct dt_gpu_source source = {
        .bind = bind,
        .given = g->start.gpus_given ? &g->start.gpus : NULL,
        .mask = bind == DT_GPU_BIND_NONE ? dt_env_given(&g->start, environ, mask) : getenv(mask),
        .detected = &g->host->gpus,
        .granted = granted_gpus(),
        .slots = g->start.slots,
    };

    dt_gpu_list(&g->config.devices, &source);
    warn_of_missing_device(g, &source);
    warn_of_shared_devices(g, &source);
    g->config.has_mask = bind != DT_GPU_BIND_NONE;
    if (g->host->free_port)
        g->config.ras_port = (uint16_t)(g->host->free_port + DT_PORT_RAS);
}

void dt_resources_cpus(struct dt_generation *g)
{
    bool threads = g->start.bind_to == DT_BIND_HWTHREAD;
    uint32_t cores;

    g->config.cores = dt_limits_cpus("");
    g->config.cores_limited = g->config.cores < g->host->cores;
    if (g->start.bind_to == DT_BIND_NONE)
        return;
    dt_topology_read(&g->config.cpus, "");
    cores = threads ? g->config.cpus.n : dt_cpus_cores(&g->config.cpus);
    if (g->start.generation == 1 && g->start.ranks.n > cores)
        dt_generation_say(g, "%u ranks are bound to %u %s%s: some share one", g->start.ranks.n,
                          cores, threads ? "hardware thread" : "core", cores == 1 ? "" : "s");
}

static bool fits_ranks_max(const struct dt_generation *g, struct dt_lack *lack)
{
    if (g->start.ranks.n <= RANKS_MAX)
        return true;
    lack->what = dt_xasprintf("%u ranks are more than the %d that a host may have",
                              g->start.ranks.n, RANKS_MAX);
    return false;
}

/* Checks the limit in advance, and names the numbers, before the first of thousands of descriptors
 * is opened. */
static bool fits_file_limit(const struct dt_generation *g, struct dt_lack *lack)
{
    uint32_t n = g->config.numbers.n;
    uint64_t need = (uint64_t)n * FILES_PER_RANK + FILES_OTHER;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return true;
    lack->error = EMFILE;
    lack->what = dt_xasprintf("%u process%s %llu open files, and %llu are allowed", n,
                              n == 1 ? " needs" : "es need", (unsigned long long)need,
                              (unsigned long long)limit.rlim_cur);
    return false;
}

/* The directory of a job that needs it only to restore may be read-only. */
static int check_checkpoint_dir(const char *dir, enum dt_checkpoint_need need)
{
    char at[PATH_MAX];
    int error;

    if (need == DT_CHECKPOINT_THERE)
        return dt_ckptdir_is_used(dir) ? 0 : ENODATA;
    error = dt_savedir_check(dir, at);
    if (!error && need == DT_CHECKPOINT_UNUSED && dt_ckptdir_is_used(dir))
        return EEXIST;
    if (error && need == DT_CHECKPOINT_READABLE && dt_ckptdir_is_used(dir))
        return 0;
    return error;
}

static bool has_checkpoint_dir(const struct dt_generation *g, struct dt_lack *lack)
{
    const char *dir = g->start.checkpoint_dir;
    enum dt_checkpoint_need need = g->start.check_checkpoint_dir;
    int error;

    if (!need)
        return true;
    dt_standby_enter(g->host->standby, "the file system of the checkpoint directory");
    error = check_checkpoint_dir(dir, need);
    dt_standby_leave(g->host->standby);
    dt_standby_stop(g->host->standby); /* ranks are about to be forked */
    if (error)
        *lack = (struct dt_lack){ DT_SPAWN_CHECKPOINT, error, dt_xstrdup(dir) };
    return !error;
}

bool dt_resources_suffice(const struct dt_generation *g, struct dt_lack *lack)
{
    *lack = (struct dt_lack){ .step = DT_SPAWN_SYSTEM };
    return fits_ranks_max(g, lack) && fits_file_limit(g, lack) && has_checkpoint_dir(g, lack);
}
