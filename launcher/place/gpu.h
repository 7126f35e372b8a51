/* Which device a rank gets: the value of its CUDA_VISIBLE_DEVICES. Pure; the dry run and the agent
 * use the same rules.
 *
 * The host's list is the hostfile's gpus=, else the host's own CUDA_VISIBLE_DEVICES, else the GPUs
 * it has, else 0..slots-1. Of it the first "slots" entries count, and of those a rank gets the one
 * at its local rank modulo their number. An empty mask, or one that begins with -1, stays empty.
 * --gpu-bind host shows all of those to every rank; --gpu-bind none leaves the host's own mask
 * alone, and no other source counts. */
#ifndef DT_PLACE_GPU_H
#define DT_PLACE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

enum dt_gpu_bind { DT_GPU_BIND_RANK, DT_GPU_BIND_HOST, DT_GPU_BIND_NONE };

struct dt_gpu_source {
    enum dt_gpu_bind bind;
    const struct dt_strs *given; /* gpus=; NULL when not given */
    const char *mask;            /* the host's CUDA_VISIBLE_DEVICES; NULL when unset */
    /* indices or UUIDs of the GPUs; NULL or empty: none or unknown */
    const struct dt_strs *detected;
    uint32_t slots;
};

/* Fills list with the masks that the host's ranks get in turn: a device each, or the one mask that
 * all of them get. 0, or -1 out of memory. */
int dt_gpu_list(struct dt_strs *list, const struct dt_gpu_source *source);
/* The mask for a local rank; "" when the list is empty: no device, or (DT_GPU_BIND_NONE) all. */
const char *dt_gpu_of(const struct dt_strs *list, uint32_t local_rank);

#endif
