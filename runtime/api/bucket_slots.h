/* Memory for the tasks of a bucket (bucket_task.h) that all ranks can reach (dt_mem_alloc). It is
 * divided into slots, each for the buffers of one task.
 *
 * It exists only if all ranks share a host, and only once the bucket has been in use for a while.
 * The allocation is a collective call: the communicator's thread makes it before the same task on
 * all ranks. Tasks use ordinary memory before that, when all slots are taken, and when the memory
 * cannot be allocated. */
#ifndef DT_API_BUCKET_SLOTS_H
#define DT_API_BUCKET_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

struct dt_bucket_slots { /* zero-initialised except for bytes */
    size_t bytes;        /* of one slot */
    uint32_t tasks;      /* that the thread has counted before it allocated the memory */
    /* Set by the thread. NULL: there is no memory yet, and the next two are 0. */
    _Atomic(uint8_t *) memory;
    uint32_t n;
    uint32_t free; /* one bit for each slot */
};

/* Called by the communicator's thread before each task with copied buffers. Allocates the memory
 * before the eighth. */
void dt_bucket_slots_count_task(struct dt_bucket_slots *s, dt_comm_t *comm);

/* The following functions are called by the thread that uses the bucket. */

/* Returns NULL if there are no slots, or all are taken. */
uint8_t *dt_bucket_slots_take(struct dt_bucket_slots *s);
bool dt_bucket_slots_exist(const struct dt_bucket_slots *s);
bool dt_bucket_slots_contain(const struct dt_bucket_slots *s, const uint8_t *data);
/* Returns false if data is not a slot. */
bool dt_bucket_slots_release(struct dt_bucket_slots *s, const uint8_t *data);
void dt_bucket_slots_free(struct dt_bucket_slots *s); /* no task is left */

#endif
