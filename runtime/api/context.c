#include "runtime/api/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/futex.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/comm/views.h"
#include "runtime/diag/dump.h"

struct dt_context dti_context;

/* Checked before any lock is taken: in a forked child, a thread that exists only in the parent may
 * hold the lock. */
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
    return freed || dt_views_have_issued(comm)
               ? dt_fail(DT_ERR_STATE,
                         "%s: this communicator has been freed, or another thread is freeing it "
                         "(dt_comm_free, dt_finalize)",
                         name)
               : dt_fail(DT_ERR_ARG, "%s: comm is not a communicator", name);
}

/* Writes "rank 3 (host2): dt_isend: out of memory". The call has not begun. */
static dt_result_t fail_resource(const char *name, const char *what)
{
    const struct dt_world *w = &dti_context.job;
    char me[DT_WORLD_NAME];

    return dt_fail(DT_ERR_NOMEM, "%s: %s: %s", dt_world_name(w, (uint32_t)w->rank, me), name, what);
}

dt_result_t dt_context_fail_thread(const char *name)
{
    int error = dt_error_details()->error;

    fail_resource(name, dt_last_error());
    dt_error_details()->error = error;
    return DT_ERR_NOMEM;
}

/* For a handle that names no communicator. */
static dt_result_t fail_unknown_handle(const char *name, const dt_comm_t *comm)
{
    bool issued = dt_slot_has_issued(comm);
    dt_result_t r = issued ? dt_context_check_state(name) : DT_OK;

    return r == DT_OK ? fail_handle(name, comm, issued) : r;
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
        return fail_unknown_handle(name, comm);
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

dt_result_t dt_context_submit(const char *name, const dt_comm_t *comm, struct dt_task *task)
{
    dt_result_t r = dt_context_check_process(name);

    if (r == DT_OK)
        r = dt_context_check_state(name);
    if (r == DT_OK)
        r = dt_slot_submit(comm, task);
    if (r == DT_ERR_NOMEM)
        return dt_context_fail_thread(name);
    return r == DT_ERR_ARG ? fail_handle(name, comm, dt_slot_has_issued(comm)) : r;
}

dt_result_t dt_context_visit(const char *name, const dt_comm_t *comm,
                             void (*see)(struct dt_comm *c, void *arg), void *arg)
{
    dt_result_t r = dt_context_check_process(name);

    if (r == DT_OK)
        r = dt_context_check_state(name);
    if (r == DT_OK && !dt_slot_visit(comm, see, arg))
        r = fail_handle(name, comm, dt_slot_has_issued(comm));
    return r;
}

static void see_status(struct dt_comm *c, void *arg)
{
    dt_result_t *status = arg;
    struct dt_coll_error t;

    if (dt_comm_check_stop(c, &t) == DT_OK)
        return;
    dt_world_note_lost(c->world, c->id, t.code, t.rank);
    *status = dt_error_report(c, &t, NULL, NULL);
}

dt_result_t dt_context_status(const char *name, const dt_comm_t *comm)
{
    dt_result_t status = DT_OK, r = dt_context_visit(name, comm, see_status, &status);

    return r == DT_OK ? status : r;
}

static void visit_stop(struct dt_comm *c, void *id)
{
    dt_comm_stop(c, DT_ERR_CUDA, (uint32_t)c->world->rank, dt_last_error());
    *(uint64_t *)id = c->id;
}

dt_result_t dt_context_pass_on(const dt_comm_t *comm, dt_result_t r)
{
    uint64_t id;

    if (r != DT_ERR_CUDA || !dt_slot_visit(comm, visit_stop, &id))
        return r;
    dt_comm_name(id, dt_error_details()->comm);
    dt_dump_failure(&dti_context.job, id);
    return r;
}

static void visit_id(struct dt_comm *c, void *id)
{
    *(uint64_t *)id = c->id;
}

dt_result_t dt_context_refuse(const dt_comm_t *comm, enum dt_call_kind kind, dt_result_t r)
{
    uint64_t id = 0;
    bool exists = !dti_context.forked && dt_slot_visit(comm, visit_id, &id);

    if (exists)
        dt_context_pass_on(comm, r);
    return dt_error_report_refusal(exists ? &dti_context.job : NULL, id, kind, r);
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
bool dt_context_hold_job(void)
{
    atomic_fetch_add(&dti_context.job_holders, 1);
    return dti_context.state == DT_CONTEXT_READY;
}

void dt_context_release_job(void)
{
    if (atomic_fetch_sub(&dti_context.job_holders, 1) == 1 && dti_context.state == DT_CONTEXT_AFTER)
        dt_futex_wake_all(&dti_context.job_holders);
}

void dt_context_await_holders(void)
{
    uint32_t job_holders;

    while ((job_holders = atomic_load(&dti_context.job_holders)))
        dt_futex_wait(&dti_context.job_holders, job_holders);
}

void dt_context_poll_agent(void)
{
    if (dt_context_hold_job())
        dt_agentlink_poll(&dti_context.job.agent);
    dt_context_release_job();
}

/* Shared memory changes before the message is sent, so an agent that reads the message finds the
 * new limit. */
static dt_result_t set_limit(const char *name, const dt_comm_t *comm, uint32_t ms)
{
    bool is_least;

    if (!dt_slot_set_limit(comm, ms, &is_least))
        return fail_handle(name, comm, dt_slot_has_issued(comm));
    return is_least ? dt_agentlink_limit(&dti_context.job.agent, ms) : DT_OK;
}

dt_result_t dt_context_set_limit(const char *name, const dt_comm_t *comm, uint32_t ms)
{
    dt_result_t r = dt_context_check_process(name);

    if (r != DT_OK)
        return r;
    r = dt_context_hold_job() ? set_limit(name, comm, ms) : dt_context_check_state(name);
    dt_context_release_job();
    return r;
}

/* ---- channels ---- */

struct channel_request {
    const char *name; /* the public call */
    struct dt_p2p_end end;
    const struct dt_p2p_data *data; /* of a task that is submitted */
    struct dt_task *task;           /* NULL: this thread executes the call itself */
    struct dt_task *before; /* a parked task that this thread must execute first; NULL: none */
    struct dt_p2p *channel;
    uint32_t number;
    struct dt_p2p_watcher watch; /* until the earlier call is served */
    dt_result_t result;
};

/* If the call before this one is nonblocking, nothing else tells the agent that this thread waits.
 */
static void queue_for_channel(struct dt_comm *c, struct channel_request *a)
{
    a->number = dt_ticketlock_draw(&a->channel->lock);
    a->before = a->channel->parked;
    dt_p2p_take_parked(a->channel, a->before, false);
    a->watch = (struct dt_p2p_watcher){ .peer = a->end.peer,
                                        .sending = a->end.sending,
                                        .ticket = a->number,
                                        .limit_ms = c->slot->limit_ms };
    if (!dt_ticketlock_is_due(&a->channel->lock, a->number))
        dt_p2p_watch(c, &a->watch);
}

static void request_channel(struct dt_comm *c, void *arg)
{
    struct channel_request *a = arg;

    if (c->shut) {
        a->result = fail_handle(a->name, NULL, true);
        return;
    }
    a->channel = dt_p2p_find(c, a->end.peer, a->end.sending);
    if (!a->channel) {
        a->result = fail_resource(a->name, "out of memory");
        dt_comm_stop(c, DT_ERR_NOMEM, (uint32_t)c->world->rank, dt_last_error());
        return;
    }
    dt_inflight_begin(&c->p2p_inflight);
    if (!a->task) {
        queue_for_channel(c, a);
        return;
    }
    a->task->limit_ms = c->slot->limit_ms;
    a->result = dt_p2p_submit(a->channel, a->task, a->data->buf, a->data->count, a->data->dtype);
    if (a->result == DT_OK)
        return;
    dt_context_fail_thread(a->name);
    dt_inflight_end(&c->p2p_inflight);
}

dt_result_t dt_context_enter_channel(const char *name, const dt_comm_t *comm, struct dt_p2p_end end,
                                     struct dt_p2p **channel)
{
    struct channel_request a = { .name = name, .end = end };
    dt_result_t r = dt_context_visit(name, comm, request_channel, &a);

    if (r != DT_OK || a.result != DT_OK)
        return r != DT_OK ? r : a.result;
    if (a.before)
        dt_p2p_run(a.before);
    dt_ticketlock_await(&a.channel->lock, a.number);
    dt_p2p_unwatch(&a.watch);
    a.channel->limit_ms = a.watch.limit_ms;
    a.channel->since_ns = a.watch.note.since_ns;
    *channel = a.channel;
    return DT_OK;
}

void dt_context_leave_channel(struct dt_p2p *channel)
{
    struct dt_comm *c = channel->comm;
    const dt_comm_t *handle = c->slot->handle;

    dt_ticketlock_leave(&channel->lock);
    dt_inflight_end(&c->p2p_inflight);
    dt_slot_settle(handle);
}

dt_result_t dt_context_submit_p2p(const char *name, const dt_comm_t *comm, struct dt_p2p_end end,
                                  const struct dt_p2p_data *data, struct dt_task *task)
{
    struct channel_request a = { .name = name, .end = end, .data = data, .task = task };
    dt_result_t r = dt_context_visit(name, comm, request_channel, &a);

    return r != DT_OK ? r : a.result;
}
