#include "runtime/gpu/launchorder.h"

#include <pthread.h>
#include <stddef.h>

static struct {
    pthread_mutex_t mutex;
    int64_t highest; /* the highest stamp known here */
    struct dt_launchorder_call *all;
} dti_launches = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void dt_launchorder_propose(struct dt_launchorder_call *l, uint64_t comm)
{
    pthread_mutex_lock(&dti_launches.mutex);
    *l = (struct dt_launchorder_call){ comm, ++dti_launches.highest, dti_launches.all };
    dti_launches.all = l;
    pthread_mutex_unlock(&dti_launches.mutex);
}

void dt_launchorder_agree(struct dt_launchorder_call *l, int64_t stamp)
{
    pthread_mutex_lock(&dti_launches.mutex);
    l->stamp = stamp;
    if (dti_launches.highest < stamp)
        dti_launches.highest = stamp;
    pthread_mutex_unlock(&dti_launches.mutex);
}

static bool comes_before(const struct dt_launchorder_call *a, const struct dt_launchorder_call *b)
{
    return a->stamp != b->stamp ? a->stamp < b->stamp : a->comm < b->comm;
}

bool dt_launchorder_may(const struct dt_launchorder_call *l)
{
    const struct dt_launchorder_call *other;

    pthread_mutex_lock(&dti_launches.mutex);
    other = dti_launches.all;
    while (other && (other == l || comes_before(l, other)))
        other = other->next;
    pthread_mutex_unlock(&dti_launches.mutex);
    return !other;
}

void dt_launchorder_end(struct dt_launchorder_call *l)
{
    struct dt_launchorder_call **at = &dti_launches.all;

    if (!l->stamp)
        return;
    pthread_mutex_lock(&dti_launches.mutex);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->stamp = 0;
    pthread_mutex_unlock(&dti_launches.mutex);
}

/* ---- calls that are left to other threads ---- */

static _Atomic int dti_unlaunched;

void dt_unlaunched_begin(struct dt_unlaunched *u)
{
    atomic_store(&u->counts, true);
    atomic_fetch_add(&dti_unlaunched, 1);
}

void dt_unlaunched_end(struct dt_unlaunched *u)
{
    if (u && atomic_exchange(&u->counts, false))
        atomic_fetch_sub(&dti_unlaunched, 1);
}

bool dt_unlaunched_any(void)
{
    return atomic_load(&dti_unlaunched) > 0;
}
