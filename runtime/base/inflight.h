/* Counts calls under way, for a thread that waits until there are none and then frees what they
 * use. */
#ifndef DT_BASE_INFLIGHT_H
#define DT_BASE_INFLIGHT_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/base/futex.h"

struct dt_inflight { /* zero-initialised */
    _Atomic uint32_t n;
};

static inline void dt_inflight_begin(struct dt_inflight *f)
{
    atomic_fetch_add(&f->n, 1);
}

/* The last call uses only the word's address to wake: the waiting thread may already have freed
 * it. */
static inline void dt_inflight_end(struct dt_inflight *f)
{
    if (atomic_fetch_sub(&f->n, 1) == 1)
        dt_futex_wake_all(&f->n);
}

/* No call may begin meanwhile. */
static inline void dt_inflight_await(struct dt_inflight *f)
{
    uint32_t n;

    while ((n = atomic_load(&f->n)))
        dt_futex_wait(&f->n, n);
}

#endif
