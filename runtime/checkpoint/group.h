/* The ranks of a job, which agree on the result of each step of a save or restore. */
#ifndef DT_CHECKPOINT_GROUP_H
#define DT_CHECKPOINT_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_group {
    uint32_t rank;
    uint32_t size;
    void *ctx;
    /* Collective, in host memory. An error is final: the group cannot be used any more. */
    dt_result_t (*min)(void *ctx, int64_t *v, size_t n);
    dt_result_t (*sum)(void *ctx, int64_t *v, size_t n);
    dt_result_t (*broadcast)(void *ctx, void *buf, size_t bytes, uint32_t root);
};

/* Makes one result for all ranks: DT_OK if every rank passes DT_OK, else the result of the lowest
 * rank that failed, with its dt_last_error, which names the rank. dt_last_error_info then reports
 * on all ranks what it reported there. It blames that rank unless that rank blamed another. */
dt_result_t dt_group_agree(const struct dt_group *g, dt_result_t mine);

#endif
