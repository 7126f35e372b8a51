/* All ranks of a job, as far as checkpoints need them: they come to one result together. */
#ifndef DT_CHECKPOINT_GROUP_H
#define DT_CHECKPOINT_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_group {
    uint32_t rank;
    uint32_t size;
    void *ctx;
    /* Collective, over host memory. What they return is final: the group is lost then. */
    dt_result_t (*min)(void *ctx, int64_t *v, size_t n);
    dt_result_t (*sum)(void *ctx, int64_t *v, size_t n);
    dt_result_t (*broadcast)(void *ctx, void *buf, size_t bytes, uint32_t root);
};

/* Of each rank's result (with its dt_last_error) makes one for all: DT_OK where all are DT_OK, else
 * that of the lowest rank that failed, with its text, which names the rank. dt_last_error_info then
 * tells on all ranks what it told there; unless that blamed another rank, it blames this one. */
dt_result_t dt_group_agree(const struct dt_group *g, dt_result_t mine);

#endif
