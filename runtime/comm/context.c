#include "runtime/comm/context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/futex.h"
#include "runtime/base/tuningfile.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/comm/create.h"
#include "runtime/comm/slots.h"
#include "runtime/comm/split.h"
#include "runtime/diag/error_report.h"
#include "runtime/diag/recorder.h"

enum state { BEFORE, READY, AFTER };

static struct {
    _Atomic int state;      /* enum state; changes while all slots are held */
    _Atomic bool forked;    /* this process is a child of the one that called dt_init */
    _Atomic uint32_t aside; /* threads that use the agent's socket and hold no slot */
    struct dt_world job;    /* its numbers stay readable after dt_finalize */
    struct dt_comm world;
} dti_context;

/* Before dt_init, and where it has failed, children may yet be ranks; but none can be whose parent
 * was in it. */
static void in_child(void)
{
    if (dti_context.state != BEFORE || dt_slot_is_held(DT_WORLD))
        dti_context.forked = true;
    dt_checkpoint_forked();
}

/* Before the lock is touched: in a child it may be held by a thread that is not there. */
dt_result_t dt_context_check_process(const char *name)
{
    if (!dti_context.forked)
        return DT_OK;
    return dt_fail(DT_ERR_STATE,
                   "%s: this process was forked from a rank and is none itself; only the process "
                   "that called dt_init can make this call",
                   name);
}

static dt_result_t check_state(const char *name)
{
    if (dti_context.state == READY)
        return DT_OK;
    return dt_fail(DT_ERR_STATE, "%s was called %s", name,
                   dti_context.state == BEFORE ? "before dt_init" : "after dt_finalize");
}

static dt_result_t fail_handle(const char *name, bool freed)
{
    return freed ? dt_fail(DT_ERR_STATE,
                           "%s: this communicator has been freed, or another thread is freeing it "
                           "(dt_comm_free, dt_finalize)",
                           name)
                 : dt_fail(DT_ERR_ARG, "%s: comm is no communicator", name);
}

/* "rank 3 (host2): dt_isend: out of memory". Nothing has begun. */
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

/* What has no slot to enter. */
static dt_result_t fail_stranger(const char *name, const dt_comm_t *comm)
{
    bool ever = dt_slot_ever(comm);
    dt_result_t r = ever ? check_state(name) : DT_OK;

    return r == DT_OK ? fail_handle(name, ever) : r;
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
    r = check_state(name);
    if (r == DT_OK && (s->handle != comm || !s->comm))
        r = fail_handle(name, true);
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
        r = check_state(name);
    if (r == DT_OK)
        r = dt_slot_hand_in(comm, task);
    if (r == DT_ERR_NOMEM)
        return dt_context_fail_thread(name);
    return r == DT_ERR_ARG ? fail_handle(name, dt_slot_ever(comm)) : r;
}

dt_result_t dt_context_see(const char *name, const dt_comm_t *comm,
                           void (*see)(struct dt_comm *c, void *arg), void *arg)
{
    dt_result_t r = dt_context_check_process(name);

    if (r == DT_OK)
        r = check_state(name);
    if (r == DT_OK && !dt_slot_see(comm, see, arg))
        r = fail_handle(name, dt_slot_ever(comm));
    return r;
}

dt_result_t dt_context_world(const char *name, const struct dt_world **w)
{
    dt_result_t r = dt_context_check_process(name);

    *w = &dti_context.job;
    return r == DT_OK && dti_context.state == BEFORE ? check_state(name) : r;
}

/* ---- beside the slots ---- */

/* Counted first: either this sees that dt_finalize has come so far, or that sees this. Returns
 * whether the job is there until step_back. */
static bool step_aside(void)
{
    atomic_fetch_add(&dti_context.aside, 1);
    return dti_context.state == READY;
}

static void step_back(void)
{
    if (atomic_fetch_sub(&dti_context.aside, 1) == 1 && dti_context.state == AFTER)
        dt_futex_wake_all(&dti_context.aside);
}

void dt_context_heed(void)
{
    if (step_aside())
        dt_agentlink_heed(&dti_context.job.agent);
    step_back();
}

/* First what the agent sees, then the message, so that whoever has heard of it finds it. */
static dt_result_t set_limit(const char *name, const dt_comm_t *comm, uint32_t ms)
{
    bool least;

    if (!dt_slot_set_limit(comm, ms, &least))
        return fail_handle(name, dt_slot_ever(comm));
    return least ? dt_agentlink_limit(&dti_context.job.agent, ms) : DT_OK;
}

dt_result_t dt_context_set_limit(const char *name, const dt_comm_t *comm, uint32_t ms)
{
    dt_result_t r = dt_context_check_process(name);

    if (r != DT_OK)
        return r;
    r = step_aside() ? set_limit(name, comm, ms) : check_state(name);
    step_back();
    return r;
}

/* ---- ways ---- */

struct arrival {
    const char *name; /* of the call */
    struct dt_end end;
    const struct dt_parcel *parcel; /* of a task that is handed in */
    struct dt_task *task;           /* NULL: a thread that makes the call itself */
    struct dt_task *before;         /* that it has to make first; NULL: none */
    struct dt_p2p *way;
    uint32_t number;
    struct dt_p2p_watcher watch; /* until that is served */
    dt_result_t result;
};

/* What is before it may be a request, which nobody watches. */
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
        a->result = fail_handle(a->name, true);
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

/* ---- beginning and end ---- */

struct stop {
    uint64_t comm;
    int code;
    uint32_t culprit;
};

/* The agent has set the word of those that have memory of it. */
static void pass_on(struct dt_comm *c, void *arg)
{
    const struct stop *stop = arg;

    if (stop->comm != 0 && stop->comm != c->id)
        return;
    if (c->size > 1)
        dt_hostshm_stop(&c->shm.map, stop->code, stop->culprit);
    dt_comm_wake(c);
}

static void on_stop(void *arg, uint64_t comm, int code, uint32_t culprit)
{
    struct stop stop = { comm, code, culprit };

    (void)arg;
    dt_slots_see(pass_on, &stop);
}

/* Other ranks of the host do not read here that the agent has ended: it has not. */
static void pass_on_loss(struct dt_comm *c, void *why)
{
    if (c->size > 1)
        dt_hostshm_stop_because(&c->shm.map, DT_ERR_IO, (uint32_t)c->world->rank, why);
    dt_comm_wake(c);
}

static void on_lost(void *arg, int error)
{
    char why[DT_ERROR_TEXT];

    (void)arg;
    snprintf(why, sizeof why,
             "its socket to dtrun-agent, descriptor %d, cannot be read any more: %s; the program "
             "has to leave it open",
             dti_context.job.agent.fd, strerror(error));
    dt_slots_see(pass_on_loss, why);
}

static dt_result_t meet_agent(struct dt_world *w)
{
    struct dt_agentenv env;
    dt_result_t r = dt_agentenv_read(&env);

    dt_world_none(w);
    w->agent.stop = on_stop;
    w->agent.lost = on_lost;
    if (r != DT_OK)
        return r;
    return env.fd >= 0 ? dt_world_join(w, &env) : dt_world_alone(w);
}

static void leave_job(void)
{
    dt_comm_release(&dti_context.world);
    dt_world_leave(&dti_context.job);
}

static dt_result_t join(struct dt_slot *s)
{
    struct dt_comm *c = &dti_context.world;
    struct dt_world *w = &dti_context.job;
    dt_result_t r = dt_comm_create(c, w, 0, NULL, (uint32_t)w->size);

    c->slot = s;
    dt_slot_set_world(c);
    if (r == DT_OK)
        r = dt_comm_join(c, DT_CALL_INIT);
    if (r == DT_OK)
        return r;
    dt_slot_clear(s);
    leave_job();
    return r;
}

static void warn(void *arg, const char *text)
{
    struct dt_world *w = arg;

    dt_agentlink_note(&w->agent, text);
}

/* Before there is a communicator nobody else does. */
static void name_init(void)
{
    if (!*dt_error_details()->operation)
        dt_error_report_call(DT_CALL_INIT);
}

static dt_result_t init(struct dt_slot *s, const dt_config_t *config)
{
    struct dt_world *w = &dti_context.job;
    dt_result_t r = dt_config_read(config, &w->settings);

    if (r == DT_OK) {
        dt_recorder_start(w->settings.recorder_calls);
        r = meet_agent(w);
    }
    if (r == DT_OK && w->rank == 0)
        dt_tuningfile_read(&w->tuning, warn, w);
    if (r == DT_OK)
        r = join(s);
    if (r == DT_OK)
        dti_context.state = READY;
    else
        name_init();
    return r;
}

static dt_result_t watch_forks(void)
{
    static _Atomic bool watched;

    if (!watched && pthread_atfork(NULL, NULL, in_child) != 0) {
        dt_result_t r = dt_fail(DT_ERR_NOMEM, "dt_init: out of memory");

        name_init();
        return r;
    }
    watched = true;
    return DT_OK;
}

dt_result_t dt_init_with(const dt_config_t *config)
{
    dt_result_t r = dt_context_check_process("dt_init");
    struct dt_slot *s;
    uint32_t limit_ms;

    if (r == DT_OK)
        r = watch_forks();
    if (r != DT_OK)
        return r;
    s = dt_slot_enter(DT_WORLD, &limit_ms);
    if (dti_context.state == BEFORE)
        r = init(s, config);
    else
        r = dt_fail(DT_ERR_STATE, "dt_init was called %s",
                    dti_context.state == READY ? "twice" : "after dt_finalize");
    dt_slot_leave(s);
    return r;
}

dt_result_t dt_init(void)
{
    return dt_init_with(NULL);
}

static void claim_ripe(struct dt_comm *c, void *arg)
{
    struct dt_task **list = arg;

    *list = dt_p2p_claim_ripe(c, *list);
}

/* What is parked, and only has to be taken, is done in the program's eyes. */
static void make_ripe(void)
{
    struct dt_task *list = NULL;

    dt_slots_see(claim_ripe, &list);
    while (list) {
        struct dt_task *task = list;

        list = task->next;
        dt_p2p_make(task);
    }
}

static void drop(struct dt_comm *c)
{
    if (c->id == 0)
        leave_job();
    else
        dt_comm_destroy(c);
}

static void await_aside(void)
{
    uint32_t aside;

    while ((aside = atomic_load(&dti_context.aside)))
        dt_futex_wait(&dti_context.aside, aside);
}

dt_result_t dt_finalize(void)
{
    dt_result_t r = dt_context_check_process("dt_finalize");

    if (r != DT_OK)
        return r;
    make_ripe();
    if (!dt_slots_enter_all())
        return dt_fail(DT_ERR_STATE, "dt_finalize: another thread is inside a dtrun call, or a "
                                     "request or bucket is not done; wait for it first");
    r = check_state("dt_finalize");
    if (r == DT_OK) {
        dti_context.world.limit_ms = dti_context.world.slot->limit_ms;
        r = dt_comm_leave(&dti_context.world);
        dt_checkpoint_end();
        dti_context.state = AFTER;
        await_aside();
        dt_slots_clear_all(drop);
    }
    dt_slots_leave_all();
    return r;
}

/* ---- numbers and steps ---- */

void dt_version(int *major, int *minor, int *patch)
{
    if (major)
        *major = DT_VERSION_MAJOR;
    if (minor)
        *minor = DT_VERSION_MINOR;
    if (patch)
        *patch = DT_VERSION_PATCH;
}

int dt_rank(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.rank;
}

int dt_size(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.size;
}

int dt_local_rank(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.local_rank;
}

int dt_local_size(void)
{
    return dti_context.state == BEFORE ? -1 : dti_context.job.local_size;
}

int dt_node(void)
{
    return dti_context.state == BEFORE ? -1 : (int)dti_context.job.node;
}

int dt_nodes(void)
{
    return dti_context.state == BEFORE ? -1 : (int)dti_context.job.nodes;
}

int dt_generation(void)
{
    return dti_context.state == BEFORE ? -1 : (int)dti_context.job.generation;
}

static void note_step(int64_t step)
{
    struct dt_world *w = &dti_context.job;
    struct dt_hostshm_rank *me = &w->shm.ranks[w->local_rank];
    int64_t watched;

    atomic_store_explicit(&me->step, step, memory_order_relaxed);
    watched = atomic_load_explicit(&me->watch_step, memory_order_relaxed);
    if (step >= watched && watched != DT_HOSTSHM_NO_STEP)
        dt_agentlink_hold(&w->agent, step);
}

void dt_step(int64_t step)
{
    if (dti_context.forked)
        return;
    if (step_aside())
        note_step(step);
    step_back();
}
