#include "runtime/comm/slots.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/comm/comm.h"
#include "runtime/comm/views.h"

enum { SLOT_BITS = 12 };

static_assert(DT_SLOTS == 1 << SLOT_BITS, "a handle has its slot in the low bits");

/* A slot's lock comes before the mutex. While a thread holds the mutex, it only tries to take
 * slots' locks. */
static struct {
    /* Protects used and what the slots hold, in addition to their own locks. */
    pthread_mutex_t mutex;
    size_t used; /* slots from here on have never held a communicator */
    struct dt_slot slots[DT_SLOTS];
} dti_slots = { .mutex = PTHREAD_MUTEX_INITIALIZER, .used = 1 };

static struct dt_slot *slot_of(const dt_comm_t *handle)
{
    return &dti_slots.slots[(uintptr_t)handle % DT_SLOTS];
}

/* The bits above the slot's number count its communicators, from 1. */
static uintptr_t use_of(const dt_comm_t *handle)
{
    return (uintptr_t)handle >> SLOT_BITS;
}

static bool slot_has_issued(const struct dt_slot *s, const dt_comm_t *handle)
{
    return !handle || (use_of(handle) > 0 && use_of(handle) <= use_of(s->handle));
}

/* ---- limits ---- */

/* Sends and receives do not hold the slot's lock. */
static bool has_p2p_inflight(const struct dt_slot *s)
{
    return s->comm && atomic_load(&s->comm->p2p_inflight.n);
}

/* Shows the agent the lowest limit of all calls: new ones have the current limit, and those under
 * way or queued keep an older one. The agent checks as often as that requires. Returns whether it
 * must now check more often. */
static bool show_least_limit(struct dt_slot *s)
{
    _Atomic uint32_t *least_limit = &s->comm->shm.map.ranks[s->comm->local_rank].least_limit_ms;
    uint32_t before = atomic_load_explicit(least_limit, memory_order_relaxed);
    uint32_t next = dt_hostshm_lesser_limit(atomic_load(&s->limit_ms), 0), least = next;

    if (dt_ticketlock_is_held(&s->lock) || has_p2p_inflight(s))
        least = dt_hostshm_lesser_limit(before, next);
    atomic_store_explicit(least_limit, least, memory_order_relaxed);
    atomic_store_explicit(&s->lowered, least != next, memory_order_relaxed);
    return dt_hostshm_lesser_limit(before, least) != before;
}

bool dt_slot_set_limit(const dt_comm_t *handle, uint32_t ms, bool *is_least)
{
    struct dt_slot *s = slot_of(handle);
    bool found;

    pthread_mutex_lock(&dti_slots.mutex);
    found = s->comm && s->handle == handle && !s->comm->shut;
    if (found) {
        atomic_store(&s->limit_ms, ms);
        *is_least = show_least_limit(s);
    }
    pthread_mutex_unlock(&dti_slots.mutex);
    return found;
}

static void settle_slot(struct dt_slot *s)
{
    if (!atomic_load_explicit(&s->lowered, memory_order_relaxed) || dt_ticketlock_is_held(&s->lock))
        return;
    pthread_mutex_lock(&dti_slots.mutex);
    if (s->comm)
        show_least_limit(s);
    pthread_mutex_unlock(&dti_slots.mutex);
}

void dt_slot_settle(const dt_comm_t *handle)
{
    settle_slot(slot_of(handle));
}

/* ---- calls ---- */

/* The number is drawn before the limit is read. So a thread that sets the limit either sees this
 * call under way, or this call sees the new limit. */
struct dt_slot *dt_slot_enter(const dt_comm_t *handle, uint32_t *limit_ms)
{
    struct dt_slot *s = slot_of(handle);
    uint32_t number;

    if (s->handle != handle)
        return NULL;
    if (dt_async_is_me(&s->async)) {
        *limit_ms = s->async.limit_ms;
        return s;
    }
    number = dt_ticketlock_draw(&s->lock);
    *limit_ms = atomic_load(&s->limit_ms);
    dt_async_wake(&s->async);
    dt_ticketlock_await(&s->lock, number);
    return s;
}

void dt_slot_leave(struct dt_slot *s)
{
    if (dt_async_is_me(&s->async))
        return;
    dt_ticketlock_leave(&s->lock);
    settle_slot(s);
}

bool dt_slot_is_held(const dt_comm_t *handle)
{
    return dt_ticketlock_is_held(&slot_of(handle)->lock);
}

dt_result_t dt_slot_submit(const dt_comm_t *handle, struct dt_task *task)
{
    struct dt_slot *s = slot_of(handle);
    dt_result_t r = DT_ERR_ARG;

    pthread_mutex_lock(&dti_slots.mutex);
    if (s->comm && s->handle == handle && !s->comm->shut) {
        task->limit_ms = atomic_load(&s->limit_ms);
        r = dt_async_submit(&s->async, task);
    }
    pthread_mutex_unlock(&dti_slots.mutex);
    return r;
}

void dt_slot_await_ahead(const dt_comm_t *handle)
{
    dt_async_wake(&slot_of(handle)->async);
    dt_async_await_ahead(&slot_of(handle)->async);
}

void dt_slot_wake(const dt_comm_t *handle)
{
    dt_async_wake(&slot_of(handle)->async);
}

static void put_in_slot(struct dt_slot *s, struct dt_comm *c)
{
    pthread_mutex_lock(&dti_slots.mutex);
    s->comm = c;
    pthread_mutex_unlock(&dti_slots.mutex);
}

void dt_slot_set_world(struct dt_comm *c)
{
    struct dt_slot *s = dti_slots.slots;

    dt_async_open(&s->async, &s->lock);
    put_in_slot(s, c);
}

void dt_slot_shut(struct dt_slot *s)
{
    pthread_mutex_lock(&dti_slots.mutex);
    s->comm->shut = true;
    pthread_mutex_unlock(&dti_slots.mutex);
}

void dt_slot_clear(struct dt_slot *s)
{
    put_in_slot(s, NULL);
}

static struct dt_slot *take_free_slot(void)
{
    for (size_t i = 1; i < DT_SLOTS; i++) {
        struct dt_slot *s = &dti_slots.slots[i];

        if (s->comm || !dt_ticketlock_try(&s->lock, NULL))
            continue;
        if (i >= dti_slots.used) {
            dt_async_open(&s->async, &s->lock);
            dti_slots.used = i + 1;
        }
        return s;
    }
    return NULL;
}

bool dt_slot_assign(struct dt_comm *c)
{
    struct dt_slot *s;

    pthread_mutex_lock(&dti_slots.mutex);
    s = take_free_slot();
    if (s) {
        uintptr_t slot = (uintptr_t)(s - dti_slots.slots);

        s->comm = c;
        c->slot = s;
        atomic_store(&s->limit_ms, c->limit_ms);
        show_least_limit(s);
        s->handle = (dt_comm_t *)((use_of(s->handle) + 1) << SLOT_BITS | slot);
        dt_ticketlock_leave(&s->lock);
    }
    pthread_mutex_unlock(&dti_slots.mutex);
    return s != NULL;
}

static void leave_first_slots(size_t n)
{
    for (size_t i = 0; i < n; i++)
        dt_ticketlock_leave(&dti_slots.slots[i].lock);
}

static void shut_all_slots(void)
{
    for (size_t i = 0; i < dti_slots.used; i++) {
        if (dti_slots.slots[i].comm)
            dti_slots.slots[i].comm->shut = true;
    }
}

bool dt_slots_enter_all(void)
{
    size_t n = 0;
    bool all;

    pthread_mutex_lock(&dti_slots.mutex);
    while (n < dti_slots.used && !has_p2p_inflight(&dti_slots.slots[n]) &&
           dt_ticketlock_try(&dti_slots.slots[n].lock, NULL))
        n++;
    all = n == dti_slots.used && !dt_views_are_used();
    if (all)
        shut_all_slots();
    else
        leave_first_slots(n);
    pthread_mutex_unlock(&dti_slots.mutex);
    return all;
}

static int compare_newest_first(const void *a, const void *b)
{
    const struct dt_slot *const *x = a, *const *y = b;

    return (*x)->comm->id < (*y)->comm->id ? 1 : -1;
}

/* NCCL frees a communicator when all of its ranks on the host do so. Therefore all ranks must free
 * several communicators in the same order: by id, because the order of slots may differ between
 * ranks once slots have been reused. */
void dt_slots_clear_all(void (*drop)(struct dt_comm *c))
{
    static struct dt_slot *full[DT_SLOTS];
    size_t n = 0;

    for (size_t i = dti_slots.used; i-- > 0;) {
        dt_async_close(&dti_slots.slots[i].async);
        if (dti_slots.slots[i].comm)
            full[n++] = &dti_slots.slots[i];
    }
    qsort(full, n, sizeof *full, compare_newest_first);
    for (size_t i = 0; i < n; i++) {
        struct dt_comm *c = full[i]->comm;

        dt_slot_clear(full[i]);
        c->slot = NULL;
        drop(c);
    }
}

void dt_slots_leave_all(void)
{
    leave_first_slots(dti_slots.used);
}

bool dt_slot_has_issued(const dt_comm_t *handle)
{
    bool issued;

    pthread_mutex_lock(&dti_slots.mutex);
    issued = slot_has_issued(slot_of(handle), handle);
    pthread_mutex_unlock(&dti_slots.mutex);
    return issued;
}

bool dt_slot_visit(const dt_comm_t *handle, void (*see)(struct dt_comm *c, void *arg), void *arg)
{
    const struct dt_slot *s = slot_of(handle);
    bool seen;

    pthread_mutex_lock(&dti_slots.mutex);
    seen = s->comm && s->handle == handle;
    if (seen)
        see(s->comm, arg);
    pthread_mutex_unlock(&dti_slots.mutex);
    return seen;
}

void dt_slots_visit(void (*see)(struct dt_comm *c, void *arg), void *arg)
{
    pthread_mutex_lock(&dti_slots.mutex);
    for (size_t i = 0; i < dti_slots.used; i++) {
        if (dti_slots.slots[i].comm)
            see(dti_slots.slots[i].comm, arg);
    }
    pthread_mutex_unlock(&dti_slots.mutex);
}
