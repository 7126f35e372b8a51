#include "runtime/api/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/futex.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/comm/views.h"

struct dt_context dti_context;

/* Checked before any lock is taken: in a forked child a thread that does not exist there may hold
 * the lock. */
dt_result_t dt_context_check_process(const char *name)
{
    if (!dti_context.forked)
        return DT_OK;
    return dt_fail(
        DT_ERR_STATE,
        "%s: this process was forked from a rank and is not a rank itself; only the process "
        "that called dt_init can make this call",
        name);
}

dt_result_t dt_context_check_state(const char *name)
{
    if (dti_context.state == DT_CONTEXT_READY)
        return DT_OK;
    return dt_fail(DT_ERR_STATE, "%s was called %s", name,
                   dti_context.state == DT_CONTEXT_BEFORE ? "before dt_init" : "after dt_finalize");
}

static dt_result_t fail_handle(const char *name, const dt_comm_t *comm, bool freed)
{
    if (dt_views_comm(comm) != comm)
        return dt_fail(
            DT_ERR_ARG,
            "%s: comm is a stream's view of a communicator (dt_comm_on_stream), on which "
            "this call cannot be made",
            name);
    return freed || dt_views_ever(comm)
               ? dt_fail(DT_ERR_STATE,
                         "%s: this communicator has been freed, or another thread is freeing it "
                         "(dt_comm_free, dt_finalize)",
                         name)
               : dt_fail(DT_ERR_ARG, "%s: comm is not a communicator", name);
}

/* Writes "rank 3 (host2): dt_isend: out of memory". The call has not begun. */
static dt_result_t fail_want(const char *name, const char *what)
{
    const struct dt_world *w = &dti_context.job;
    char me[DT_WORLD_NAME];

    return dt_fail(DT_ERR_NOMEM, "%s: %s: %s", dt_world_name(w, (uint32_t)w->rank, me), name, what);
}

dt_result_t dt_context_fail_thread(const char *name)
{
    return fail_want(name, "no thread for calls in the background can be started (RLIMIT_NPROC?)");
}

/* For a handle that names no communicator. */
static dt_result_t fail_stranger(const char *name, const dt_comm_t *comm)
{
    bool ever = dt_slot_ever(comm);
    dt_result_t r = ever ? dt_context_check_state(name) : DT_OK;

    return r == DT_OK ? fail_handle(name, comm, ever) : r;
}

dt_result_t dt_context_enter(const char *name, const dt_comm_t *comm, struct dt_comm **c)
{
    dt_result_t r = dt_context_check_process(name);
    struct dt_slot *s;
    uint32_t limit_ms;

    if (r != DT_OK)
        return r;
    s = dt_slot_enter(comm, &limit_ms);
    if (!s)
        return fail_stranger(name, comm);
    r = dt_context_check_state(name);
    if (r == DT_OK && (s->handle != comm || !s->comm))
        r = fail_handle(name, comm, true);
    if (r != DT_OK) {
        dt_slot_leave(s);
        return r;
    }
    *c = s->comm;
    (*c)->limit_ms = limit_ms;
    return DT_OK;
}

void dt_context_leave(struct dt_comm *c)
{
    dt_slot_leave(c->slot);
}

dt_result_t dt_context_hand_in(const char *name, const dt_comm_t *comm, struct dt_task *task)
{
    dt_result_t r = dt_context_check_process(name);

    if (r == DT_OK)
        r = dt_context_check_state(name);
    if (r == DT_OK)
        r = dt_slot_hand_in(comm, task);
    if (r == DT_ERR_NOMEM)
        return dt_context_fail_thread(name);
    return r == DT_ERR_ARG ? fail_handle(name, comm, dt_slot_ever(comm)) : r;
}

dt_result_t dt_context_see(const char *name, const dt_comm_t *comm,
                           void (*see)(struct dt_comm *c, void *arg), void *arg)
{
    dt_result_t r = dt_context_check_process(name);

    if (r == DT_OK)
        r = dt_context_check_state(name);
    if (r == DT_OK && !dt_slot_see(comm, see, arg))
        r = fail_handle(name, comm, dt_slot_ever(comm));
    return r;
}

static void see_status(struct dt_comm *c, void *arg)
{
    dt_result_t *status = arg;
    struct dt_coll_error t;
    uint32_t culprit;
    int stopped = dt_comm_stopped(c, &culprit);

    if (!stopped)
        return;
    dt_coll_error(&t, (dt_result_t)stopped, culprit);
    *status = dt_error_report(c, &t, NULL, NULL);
}

dt_result_t dt_context_status(const char *name, const dt_comm_t *comm)
{
    dt_result_t status = DT_OK, r = dt_context_see(name, comm, see_status, &status);

    return r == DT_OK ? status : r;
}

dt_result_t dt_context_world(const char *name, const struct dt_world **w)
{
    dt_result_t r = dt_context_check_process(name);

    *w = &dti_context.job;
    return r == DT_OK && dti_context.state == DT_CONTEXT_BEFORE ? dt_context_check_state(name) : r;
}

/* ---- using the job without a slot ---- */

/* Counts this thread before it reads the state. So either it sees that dt_finalize is ending the
 * job, or dt_finalize waits for it. */
bool dt_context_step_aside(void)
{
    atomic_fetch_add(&dti_context.aside, 1);
    return dti_context.state == DT_CONTEXT_READY;
}

void dt_context_step_back(void)
{
    if (atomic_fetch_sub(&dti_context.aside, 1) == 1 && dti_context.state == DT_CONTEXT_AFTER)
        dt_futex_wake_all(&dti_context.aside);
}

void dt_context_await_aside(void)
{
    uint32_t aside;

    while ((aside = atomic_load(&dti_context.aside)))
        dt_futex_wait(&dti_context.aside, aside);
}

void dt_context_heed(void)
{
    if (dt_context_step_aside())
        dt_agentlink_heed(&dti_context.job.agent);
    dt_context_step_back();
}

/* Shared memory changes before the message is sent, so an agent that reads the message finds the
 * new limit. */
static dt_result_t set_limit(const char *name, const dt_comm_t *comm, uint32_t ms)
{
    bool least;

    if (!dt_slot_set_limit(comm, ms, &least))
        return fail_handle(name, comm, dt_slot_ever(comm));
    return least ? dt_agentlink_limit(&dti_context.job.agent, ms) : DT_OK;
}

dt_result_t dt_context_set_limit(const char *name, const dt_comm_t *comm, uint32_t ms)
{
    dt_result_t r = dt_context_check_process(name);

    if (r != DT_OK)
        return r;
    r = dt_context_step_aside() ? set_limit(name, comm, ms) : dt_context_check_state(name);
    dt_context_step_back();
    return r;
}

/* ---- channels ---- */

struct arrival {
    const char *name; /* the public call */
    struct dt_end end;
    const struct dt_parcel *parcel; /* of a task that is handed in */
    struct dt_task *task;           /* NULL: this thread executes the call itself */
    struct dt_task *before; /* a parked task that this thread must execute first; NULL: none */
    struct dt_p2p *way;
    uint32_t number;
    struct dt_p2p_watcher watch; /* until the earlier call is served */
    dt_result_t result;
};

/* The call before it may be nonblocking, and then nothing else tells the agent that this thread
 * waits. */
static void queue(struct dt_comm *c, struct arrival *a)
{
    a->number = dt_ticketlock_draw(&a->way->lock);
    a->before = a->way->parked;
    dt_p2p_claim(a->way, a->before, false);
    a->watch = (struct dt_p2p_watcher){ .peer = a->end.peer,
                                        .giving = a->end.giving,
                                        .ticket = a->number,
                                        .limit_ms = c->slot->limit_ms };
    if (!dt_ticketlock_is_due(&a->way->lock, a->number))
        dt_p2p_watch(c, &a->watch);
}

static void arrive(struct dt_comm *c, void *arg)
{
    struct arrival *a = arg;

    if (c->shut) {
        a->result = fail_handle(a->name, NULL, true);
        return;
    }
    a->way = dt_p2p_find(c, a->end.peer, a->end.giving);
    if (!a->way) {
        a->result = fail_want(a->name, "out of memory");
        dt_comm_stop(c, DT_ERR_NOMEM, (uint32_t)c->world->rank, dt_last_error());
        return;
    }
    atomic_fetch_add(&c->passing, 1);
    if (!a->task) {
        queue(c, a);
        return;
    }
    a->task->limit_ms = c->slot->limit_ms;
    a->result = dt_p2p_hand_in(a->way, a->task, a->parcel->buf, a->parcel->count, a->parcel->dtype);
    if (a->result == DT_OK)
        return;
    dt_context_fail_thread(a->name);
    dt_p2p_passed(c);
}

dt_result_t dt_context_enter_way(const char *name, const dt_comm_t *comm, struct dt_end end,
                                 struct dt_p2p **way)
{
    struct arrival a = { .name = name, .end = end };
    dt_result_t r = dt_context_see(name, comm, arrive, &a);

    if (r != DT_OK || a.result != DT_OK)
        return r != DT_OK ? r : a.result;
    if (a.before)
        dt_p2p_make(a.before);
    dt_ticketlock_await(&a.way->lock, a.number);
    dt_p2p_unwatch(&a.watch);
    a.way->limit_ms = a.watch.limit_ms;
    a.way->since_ns = a.watch.note.since_ns;
    *way = a.way;
    return DT_OK;
}

void dt_context_leave_way(struct dt_p2p *way)
{
    struct dt_comm *c = way->comm;
    const dt_comm_t *handle = c->slot->handle;

    dt_ticketlock_leave(&way->lock);
    dt_p2p_passed(c);
    dt_slot_settle(handle);
}

dt_result_t dt_context_hand_in_way(const char *name, const dt_comm_t *comm, struct dt_end end,
                                   const struct dt_parcel *parcel, struct dt_task *task)
{
    struct arrival a = { .name = name, .end = end, .parcel = parcel, .task = task };
    dt_result_t r = dt_context_see(name, comm, arrive, &a);

    return r != DT_OK ? r : a.result;
}
