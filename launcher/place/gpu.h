/* The devices of each rank: the value of its CUDA_VISIBLE_DEVICES. Pure; the dry run and the agent
 * use the same rules.
 *
 * The host's list is the hostfile's gpus=, else the host's own CUDA_VISIBLE_DEVICES, else the GPUs
 * it has, else 0..slots-1. In the last two cases it has at most as many entries as the batch system
 * grants GPUs. Only its first "slots" entries count. A rank gets the entry at its local rank modulo
 * their number. An empty mask, or one that begins with -1, stays empty. --gpu-bind host shows all
 * entries to every rank. --gpu-bind none leaves the mask as the host, -x or --unset sets it, and
 * uses no other source. */
#ifndef DT_PLACE_GPU_H
#define DT_PLACE_GPU_H

#include <stdint.h>

#include "runtime/wire/codec.h"

enum dt_gpu_bind { DT_GPU_BIND_RANK, DT_GPU_BIND_HOST, DT_GPU_BIND_NONE };

struct dt_gpu_source {
    enum dt_gpu_bind bind;
    const struct dt_strs *given; /* gpus=, or NULL if not given */
    const char *mask;            /* CUDA_VISIBLE_DEVICES before dtrun sets it; NULL: unset */
    /* indices or UUIDs of the GPUs; NULL or empty: none or unknown */
    const struct dt_strs *detected;
    uint32_t granted; /* how many the batch system grants, which may set no mask; 0: unknown */
    uint32_t slots;
};

/* Fills list with the masks that the host's ranks get in turn: one device each, or one mask that
 * all of them get. */
void dt_gpu_list(struct dt_strs *list, const struct dt_gpu_source *source);
/* Returns the first index in these masks that a host with the detected GPUs does not have, or -1.
 * UUIDs are taken to exist, and so is every index if the detected ones have UUIDs or are unknown.
 */
long dt_gpu_missing(const struct dt_strs *list, const struct dt_strs *detected);
/* Returns the mask for a local rank. If the list is empty, this is "", which means no device or,
 * with DT_GPU_BIND_NONE, all. */
const char *dt_gpu_of(const struct dt_strs *list, uint32_t local_rank);

#endif
