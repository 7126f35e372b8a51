/* A lock that is taken in the order in which threads asked for it. Waiting threads sleep.
 *
 * Who comes draws a number; the one that is served holds the lock (Mellor-Crummey and Scott,
 * Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991,
 * section 2.2). A thread may draw for another, which then waits for that number. All zero: nobody
 * holds it. */
#ifndef DT_BASE_TICKETLOCK_H
#define DT_BASE_TICKETLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/futex.h"

struct dt_ticketlock {
    _Atomic uint32_t next;
    _Atomic uint32_t served;
};

/* Draws a number. Somebody has to await it, and leave. */
static inline uint32_t dt_ticketlock_draw(struct dt_ticketlock *l)
{
    return atomic_fetch_add(&l->next, 1);
}

/* Draws this number, if it is the next. */
static inline bool dt_ticketlock_draw_if(struct dt_ticketlock *l, uint32_t number)
{
    return atomic_compare_exchange_strong(&l->next, &number, number + 1);
}

/* As if the newest number had not been drawn; nobody draws meanwhile. */
static inline void dt_ticketlock_undraw(struct dt_ticketlock *l)
{
    atomic_fetch_sub(&l->next, 1);
}

/* Whether to await it would be to wait. */
static inline bool dt_ticketlock_is_due(struct dt_ticketlock *l, uint32_t number)
{
    return atomic_load(&l->served) == number;
}

void dt_ticketlock_sleep(struct dt_ticketlock *l, uint32_t number);
static inline void dt_ticketlock_await(struct dt_ticketlock *l, uint32_t number)
{
    if (!dt_ticketlock_is_due(l, number))
        dt_ticketlock_sleep(l, number);
}

/* Whether anybody holds it, or waits for it. */
static inline bool dt_ticketlock_is_held(struct dt_ticketlock *l)
{
    return atomic_load(&l->next) != atomic_load(&l->served);
}

/* Takes it only if nobody holds it or waits for it; number may be NULL. */
bool dt_ticketlock_try(struct dt_ticketlock *l, uint32_t *number);

/* All who wait are woken, for the kernel does not know whose turn it is; few ever wait. */
static inline void dt_ticketlock_leave(struct dt_ticketlock *l)
{
    uint32_t served = atomic_fetch_add(&l->served, 1) + 1;

    if (atomic_load(&l->next) != served)
        dt_futex_wake_all(&l->served);
}

#endif
