#include "runtime/base/ticketlock.h"

void dt_ticketlock_sleep(struct dt_ticketlock *l, uint32_t number)
{
    uint32_t served;

    while ((served = atomic_load(&l->served)) != number)
        dt_futex_wait(&l->served, served);
}

bool dt_ticketlock_try(struct dt_ticketlock *l, uint32_t *number)
{
    uint32_t served = atomic_load(&l->served), next = served;

    if (number)
        *number = served;
    return atomic_compare_exchange_strong(&l->next, &next, served + 1);
}
