#include "runtime/gpu/ncclguard.h"

#include <stdatomic.h>
#include <stdlib.h>

struct dt_ncclguard {
    _Atomic int holders;
    _Atomic int inside;
    _Atomic bool shut;
};

struct dt_ncclguard *dt_ncclguard_new(void)
{
    struct dt_ncclguard *g = calloc(1, sizeof *g);

    if (g)
        atomic_init(&g->holders, 1);
    return g;
}

void dt_ncclguard_hold(struct dt_ncclguard *g)
{
    atomic_fetch_add(&g->holders, 1);
}

void dt_ncclguard_drop(struct dt_ncclguard *g)
{
    if (g && atomic_fetch_sub(&g->holders, 1) == 1)
        free(g);
}

/* A thread that enters counts itself before it checks `shut`, and the thread that shuts sets it
 * before it checks the count. So at least one of the two sees the other. */
bool dt_ncclguard_enter(struct dt_ncclguard *g)
{
    atomic_fetch_add(&g->inside, 1);
    if (!atomic_load(&g->shut))
        return true;
    atomic_fetch_sub(&g->inside, 1);
    return false;
}

void dt_ncclguard_leave(struct dt_ncclguard *g)
{
    atomic_fetch_sub(&g->inside, 1);
}

void dt_ncclguard_shut(struct dt_ncclguard *g)
{
    atomic_store(&g->shut, true);
}

bool dt_ncclguard_is_empty(struct dt_ncclguard *g)
{
    return atomic_load(&g->inside) == 0;
}
