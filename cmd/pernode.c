#include "cmd/pernode.h"

#include <stdlib.h>

#include "cmd/options.h"
#include "launcher/base/granted/limits.h"
#include "launcher/base/nvidia.h"
#include "launcher/place/gpu.h"

static void count_one(void *n, const char *information)
{
    (void)information;
    ++*(int *)n;
}

/* Counts the GPUs that CUDA programs may use. */
static int usable_gpus(const char *root)
{
    const struct dt_gpu_source source = { .mask = getenv("CUDA_VISIBLE_DEVICES"),
                                          .slots = DT_SLOTS_MAX };
    struct dt_strs list = { 0 };
    int n = 0;

    if (!source.mask) {
        dt_nvidia_each(root, count_one, &n);
        return n;
    }
    dt_gpu_list(&list, &source);
    n = (int)list.n;
    dt_strs_free(&list);
    return n;
}

static const char *word_of(int per_node)
{
    return per_node == DT_PER_NODE_GPU ? "gpu" : per_node == DT_PER_NODE_CPU ? "cpu" : "auto";
}

static int count_here(int per_node, const char *root, struct dt_error *err)
{
    int gpus = per_node == DT_PER_NODE_CPU ? 0 : usable_gpus(root);

    if (per_node == DT_PER_NODE_GPU && gpus == 0)
        return dt_error_usage(err, "--npernode gpu: this machine has no NVIDIA GPU");
    return gpus ? gpus : (int)dt_limits_cpus(root);
}

/* The one task that a batch job has on a host may be meant for a launcher such as torchrun, and
 * says nothing about the number of ranks. */
static bool is_known(const struct dt_host *h)
{
    return h->gpus_given || (h->slots_given && !(h->slots_granted && h->slots == 1));
}

int dt_pernode_slots(struct dt_hostlist *hosts, int per_node, const char *root,
                     struct dt_error *err)
{
    for (size_t i = 0; i < hosts->n; i++) {
        struct dt_host *h = &hosts->v[i];

        if (is_known(h))
            continue;
        if (!h->local)
            return dt_error_usage(err,
                                  "--npernode %s: dtrun does not know what %.200s has before it "
                                  "connects: write %.200s:N, slots= or gpus= in a hostfile, or "
                                  "--npernode N",
                                  word_of(per_node), h->name, h->name);
        h->slots = count_here(per_node, root, err);
        if (h->slots < 0)
            return -1;
    }
    return 0;
}
