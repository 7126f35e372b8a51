/* A fair lock: threads get it in the order in which they asked for it. Waiting threads sleep.
 *
 * A thread draws a number, and holds the lock when that number is served (Mellor-Crummey and Scott,
 * Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991,
 * section 2.2). A thread may draw a number for another thread, which then waits for it.
 * Zero-initialised: the lock is free. */
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

/* Draws a number. Some thread must wait for it and leave. */
static inline uint32_t dt_ticketlock_draw(struct dt_ticketlock *l)
{
    return atomic_fetch_add(&l->next, 1);
}

/* Whether this number is the next to be drawn. */
static inline bool dt_ticketlock_is_next(struct dt_ticketlock *l, uint32_t number)
{
    return atomic_load(&l->next) == number;
}

/* Draws this number if it is the next one. */
static inline bool dt_ticketlock_draw_if(struct dt_ticketlock *l, uint32_t number)
{
    return atomic_compare_exchange_strong(&l->next, &number, number + 1);
}

/* Takes back the newest number. No thread may draw one meanwhile. */
static inline void dt_ticketlock_undraw(struct dt_ticketlock *l)
{
    atomic_fetch_sub(&l->next, 1);
}

/* Whether the number is being served, so that waiting for it takes no time. */
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

/* Whether a thread holds the lock or waits for it. */
static inline bool dt_ticketlock_is_held(struct dt_ticketlock *l)
{
    return atomic_load(&l->next) != atomic_load(&l->served);
}

/* Takes the lock only if no thread holds it or waits for it. number may be NULL. */
bool dt_ticketlock_try(struct dt_ticketlock *l, uint32_t *number);

/* Wakes all waiting threads, because the kernel does not know which one is next. There are few. */
static inline void dt_ticketlock_leave(struct dt_ticketlock *l)
{
    uint32_t served = atomic_fetch_add(&l->served, 1) + 1;

    if (atomic_load(&l->next) != served)
        dt_futex_wake_all(&l->served);
}

#endif
