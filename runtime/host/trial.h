/* Which ways to fold are the faster ones here, found out by trying them. That depends on how fast
 * one core gets what another one has written. Where it is slow (two cores of a Sapphire Rapids),
 * ranks that fold in each other's memory, by the kernel's copies, take half as long as through
 * staging (512 KiB), and few bytes that everybody folds for itself, at one synchronisation, three
 * quarters (16 KiB); where it is fast (two cores of a Zen 3 complex), twice as long, and half as
 * long again. */
#ifndef DT_HOST_TRIAL_H
#define DT_HOST_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/host/chunk.h"

/* Whether a reduction of so many bytes needs to know it first. All ranks agree. */
bool dt_trial_is_due(const struct dt_shm *s, size_t bytes);
/* Part of that call, on all ranks: sets s->direct_fold and s->small, by which reduce goes. Takes
 * some milliseconds. */
dt_result_t dt_trial_make(struct dt_shm *s, const struct dt_call *call,
                          dt_result_t (*reduce)(struct dt_shm *s, struct dt_chunk *whole));

#endif
