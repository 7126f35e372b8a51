#include "runtime/ticketlock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void dt_ticketlock_take(struct dt_ticketlock *l)
{
    uint32_t mine = atomic_fetch_add(&l->next, 1);
    uint32_t served;

    while ((served = atomic_load(&l->served)) != mine)
        syscall(SYS_futex, &l->served, FUTEX_WAIT_PRIVATE, served, NULL, NULL, 0);
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
        syscall(SYS_futex, &l->served, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
