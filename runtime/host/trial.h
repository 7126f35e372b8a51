/* Which of two ways to fold many bytes is the faster one here, found out by trying both. That
 * depends on how fast one core gets what another one has written: where it is slow, ranks that fold
 * in each other's memory, by the kernel's copies, take half as long as through staging (two cores
 * of a Sapphire Rapids, 512 KiB); where it is fast, twice as long (two cores of one Zen 3 complex).
 */
#ifndef DT_HOST_TRIAL_H
#define DT_HOST_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/host/chunk.h"

/* Whether a reduction of so many bytes needs to know it first. All ranks agree. */
bool dt_trial_is_due(const struct dt_shm *s, size_t bytes);
/* Part of that call, on all ranks: sets s->direct_fold. reduce is how chunks are reduced. Takes
 * a millisecond or two. */
dt_result_t dt_trial_make(struct dt_shm *s, const struct dt_call *call,
                          dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole));

#endif
