#include "runtime/comm/pairnotes.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "runtime/base/clock.h"

enum { NS_PER_MS = 1000 * 1000 };

static pthread_mutex_t dti_queues = PTHREAD_MUTEX_INITIALIZER; /* protects all queues */

/* Stands in for the holder of a place while the holder changes. The thread that stored it never
 * waits before it stores the new holder. */
static struct dt_pairnote dti_changing;

/* A rank does not know dtrun's own limit, so a note without a limit is due last. */
static uint64_t due_ns(const struct dt_pairnote *note)
{
    if (note->limit_ms == DT_HOSTSHM_NO_LIMIT)
        return UINT64_MAX;
    return note->limit_ms ? note->since_ns + (uint64_t)note->limit_ms * NS_PER_MS : UINT64_MAX - 1;
}

static bool is_due_before(const struct dt_pairnote *a, const struct dt_pairnote *b)
{
    uint64_t due_a = due_ns(a), due_b = due_ns(b);

    return due_a != due_b ? due_a < due_b : a->since_ns < b->since_ns;
}

/* ---- places: changed one by one, without the lock ---- */

static uint32_t age_ms(const struct dt_pairnote *note, uint64_t now_ns)
{
    return now_ns > note->since_ns ? (uint32_t)((now_ns - note->since_ns) / NS_PER_MS) : 0;
}

static bool take_place(struct dt_pairnotes *all, int place, struct dt_pairnote *from)
{
    return atomic_compare_exchange_strong(&all->holders[place], &from, &dti_changing);
}

static int take_free_place(struct dt_pairnotes *all)
{
    for (int i = 0; i < DT_HOSTSHM_PAIRS; i++) {
        if (!atomic_load(&all->holders[i]) && take_place(all, i, NULL))
            return i;
    }
    return -1;
}

/* Writes the note to a place that the caller has taken. */
static void write_place(struct dt_pairnotes *all, struct dt_hostshm_rank *at, int place,
                        struct dt_pairnote *note, uint64_t now_ns)
{
    dt_hostshm_enter_pair(at, place, note->pair, note->limit_ms, age_ms(note, now_ns));
    atomic_store_explicit(&note->place, place, memory_order_relaxed);
    atomic_store_explicit(&all->holders[place], note, memory_order_release);
}

/* Returns false if the note has no place. */
static bool leave_place(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note)
{
    int place = atomic_load_explicit(&note->place, memory_order_relaxed);

    if (place < 0 || !take_place(all, place, note))
        return false;
    dt_hostshm_leave_pair(at, place);
    atomic_store_explicit(&all->holders[place], NULL, memory_order_release);
    return true;
}

/* ---- the queue for places: changed under the lock ---- */

static void queue_note(struct dt_pairnotes *all, struct dt_pairnote *note)
{
    struct dt_pairnote **to = &all->first;

    atomic_store_explicit(&note->place, -1, memory_order_relaxed);
    while (*to && !is_due_before(note, *to))
        to = &(*to)->next;
    note->next = *to;
    *to = note;
    atomic_fetch_add(&all->n, 1);
}

static void unqueue_note(struct dt_pairnotes *all, const struct dt_pairnote *note)
{
    struct dt_pairnote **to = &all->first;

    while (*to != note)
        to = &(*to)->next;
    *to = note->next;
    atomic_fetch_sub(&all->n, 1);
}

static struct dt_pairnote *holder_of(struct dt_pairnotes *all, int place)
{
    struct dt_pairnote *holder;

    while ((holder = atomic_load(&all->holders[place])) == &dti_changing)
        sched_yield();
    return holder;
}

/* The holder that is due last; NULL: a place has just become free. No holder's note ends
 * meanwhile: the queue is not empty, so a thread that has left its place takes the lock first. */
static struct dt_pairnote *last_due(struct dt_pairnotes *all, int *place)
{
    struct dt_pairnote *last = NULL;

    for (int i = 0; i < DT_HOSTSHM_PAIRS; i++) {
        struct dt_pairnote *holder = holder_of(all, i);

        if (!holder)
            return NULL;
        if (last && !is_due_before(last, holder))
            continue;
        last = holder;
        *place = i;
    }
    return last;
}

/* Takes a free place, or the place whose holder is due last, if the first note of the queue is due
 * earlier. -1: neither. */
static int take_for_first(struct dt_pairnotes *all, struct dt_hostshm_rank *at)
{
    struct dt_pairnote *last;
    int place;

    for (;;) {
        place = take_free_place(all);
        if (place >= 0)
            return place;
        last = last_due(all, &place);
        if (last && !is_due_before(all->first, last))
            return -1;
        if (last && take_place(all, place, last))
            break;
    }
    dt_hostshm_leave_pair(at, place);
    queue_note(all, last);
    return place;
}

static void give_places(struct dt_pairnotes *all, struct dt_hostshm_rank *at)
{
    uint64_t now_ns = dt_clock_read(CLOCK_MONOTONIC_COARSE);
    int place;

    while (all->first && (place = take_for_first(all, at)) >= 0) {
        struct dt_pairnote *note = all->first;

        unqueue_note(all, note);
        write_place(all, at, place, note, now_ns);
    }
}

void dt_pairnotes_enter(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note, uint64_t now_ns)
{
    int place = atomic_load(&all->n) ? -1 : take_free_place(all);

    if (!note->since_ns)
        note->since_ns = now_ns;
    if (place >= 0) {
        write_place(all, at, place, note, now_ns);
        return;
    }
    pthread_mutex_lock(&dti_queues);
    queue_note(all, note);
    give_places(all, at);
    pthread_mutex_unlock(&dti_queues);
}

void dt_pairnotes_leave(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note)
{
    bool left = leave_place(all, at, note);

    if (left && !atomic_load(&all->n))
        return;
    pthread_mutex_lock(&dti_queues);
    if (!left && !leave_place(all, at, note))
        unqueue_note(all, note);
    give_places(all, at);
    pthread_mutex_unlock(&dti_queues);
}
