#include "runtime/pairnotes.h"

#include <pthread.h>

static pthread_mutex_t dti_late = PTHREAD_MUTEX_INITIALIZER; /* of all lists */

static int enter(struct dt_hostshm_rank *at, const struct dt_pairnote *note)
{
    return dt_hostshm_enter_pair(at, note->pair, note->limit_ms);
}

/* To those who have waited longest. */
static void give_places(struct dt_pairnotes *all, struct dt_hostshm_rank *at)
{
    struct dt_pairnote *note;

    while ((note = all->first) && (note->place = enter(at, note)) >= 0) {
        all->first = note->next;
        all->n--;
    }
}

/* Whoever leaves a place before it is counted, leaves it to be found here. */
static void wait_for_place(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                           struct dt_pairnote *note)
{
    struct dt_pairnote **last = &all->first;

    pthread_mutex_lock(&dti_late);
    while (*last)
        last = &(*last)->next;
    *last = note;
    all->n++;
    give_places(all, at);
    pthread_mutex_unlock(&dti_late);
}

static void give_up(struct dt_pairnotes *all, const struct dt_pairnote *note)
{
    struct dt_pairnote **to = &all->first;

    pthread_mutex_lock(&dti_late);
    while (*to && *to != note)
        to = &(*to)->next;
    if (*to) {
        *to = note->next;
        all->n--;
    }
    pthread_mutex_unlock(&dti_late);
}

void dt_pairnotes_enter(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note, uint64_t pair, uint32_t limit_ms)
{
    *note = (struct dt_pairnote){ .pair = pair, .limit_ms = limit_ms };
    note->place = all->n ? -1 : enter(at, note);
    note->late = note->place < 0;
    if (note->late)
        wait_for_place(all, at, note);
}

void dt_pairnotes_leave(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note)
{
    if (note->late)
        give_up(all, note);
    dt_hostshm_leave_pair(at, note->place);
    if (!all->n)
        return;
    pthread_mutex_lock(&dti_late);
    give_places(all, at);
    pthread_mutex_unlock(&dti_late);
}
