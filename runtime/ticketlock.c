#include "runtime/ticketlock.h"

#include "runtime/futex.h"

uint32_t dt_ticketlock_draw(struct dt_ticketlock *l)
{
    return atomic_fetch_add(&l->next, 1);
}

void dt_ticketlock_await(struct dt_ticketlock *l, uint32_t number)
{
    uint32_t served;

    while ((served = atomic_load(&l->served)) != number)
        dt_futex_wait(&l->served, served);
}

void dt_ticketlock_take(struct dt_ticketlock *l)
{
    dt_ticketlock_await(l, dt_ticketlock_draw(l));
}

bool dt_ticketlock_try(struct dt_ticketlock *l)
{
    uint32_t served = atomic_load(&l->served);

    return atomic_compare_exchange_strong(&l->next, &served, served + 1);
}

/* All who wait are woken, for the kernel does not know whose turn it is; few ever wait. */
void dt_ticketlock_leave(struct dt_ticketlock *l)
{
    uint32_t served = atomic_fetch_add(&l->served, 1) + 1;

    if (atomic_load(&l->next) != served)
        dt_futex_wake_all(&l->served);
}
