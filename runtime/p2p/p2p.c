#include "runtime/p2p/p2p.h"

#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/futex.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/diag/dump.h"
#include "runtime/kernels/dtype.h"
#include "runtime/shm/sendrecv.h"
#include "runtime/tcp/alltoall.h"
#include "runtime/tcp/flow.h"

/* ---- making ---- */

/* Two ranks have two sets of pipes and connections. One set is for the data that the lower rank
 * sends. A rank's pipes to itself have a writer each: the send and the receive. */
static uint32_t direction(const struct dt_p2p *w)
{
    return (w->comm->rank < w->peer) != w->giving;
}

/* Reads only fields that do not change while other threads make collectives. */
static void furnish(struct dt_p2p *w)
{
    const struct dt_comm *c = w->comm;

    w->shm = (struct dt_shm){ .map = c->shm.map,
                              .comm = c->shm.comm,
                              .me = c->shm.me,
                              .n = c->shm.n,
                              .ranks = c->shm.ranks,
                              .round = 2, /* all ranks have met */
                              .spins = c->shm.spins,
                              .yields = c->shm.yields,
                              .least_direct = w->peer == c->rank ? SIZE_MAX : c->tuning.shm_direct,
                              .pipes = direction(w),
                              .coll_error = &w->coll_error };
    w->mesh = (struct dt_mesh){ .comm = c->mesh.comm,
                                .lane = 1 + direction(w),
                                .me = c->mesh.me,
                                .size = c->mesh.size,
                                .streams = c->streams,
                                .ranks = c->mesh.ranks,
                                .addrs = c->mesh.addrs,
                                .listener = c->mesh.listener,
                                .alarm = c->mesh.alarm,
                                .spins = c->mesh.spins };
    w->mesh.alarm.coll_error = &w->coll_error;
}

struct dt_p2p *dt_p2p_find(struct dt_comm *c, int peer, bool giving)
{
    size_t at = 2 * (size_t)peer + giving;
    struct dt_p2p *w;

    if (!c->channels)
        c->channels = calloc(2 * (size_t)c->size, sizeof(struct dt_p2p *));
    if (!c->channels || c->channels[at])
        return c->channels ? c->channels[at] : NULL;
    c->channels[at] = w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->comm = c;
    w->peer = peer;
    w->giving = giving;
    dt_async_open(&w->async, &w->lock);
    furnish(w);
    w->shm.ring = dt_ring_open(c->id);
    return w;
}

/* ---- ending ---- */

void dt_p2p_passed(struct dt_comm *c)
{
    if (atomic_fetch_sub(&c->passing, 1) == 1)
        dt_futex_wake_all(&c->passing);
}

struct last {
    struct dt_p2p *channel;
    struct dt_task *parked;
    struct dt_p2p_watcher watch;
};

static void claim_and_watch(struct dt_comm *c, void *arg)
{
    struct last *l = arg;

    l->parked = l->channel->parked;
    dt_p2p_claim(l->channel, l->parked, false);
    dt_p2p_watch(c, &l->watch);
}

static void finish(struct dt_p2p *w)
{
    uint32_t number = dt_ticketlock_draw(&w->lock);
    struct last l = { .channel = w,
                      .watch = { .peer = w->peer,
                                 .giving = w->giving,
                                 .ticket = number - 1,
                                 .limit_ms = w->comm->limit_ms } };

    if (!dt_ticketlock_is_due(&w->lock, number))
        dt_slot_see(w->comm->slot->handle, claim_and_watch, &l);
    if (l.parked)
        dt_p2p_make(l.parked);
    dt_ticketlock_await(&w->lock, number);
    dt_ticketlock_leave(&w->lock);
    dt_p2p_unwatch(&l.watch);
}

void dt_p2p_finish(struct dt_comm *c)
{
    for (int i = 0; c->channels && i < 2 * c->size; i++) {
        if (c->channels[i])
            finish(c->channels[i]);
    }
}

/* A thread that waited for a completed call may still be in dt_p2p_unwatch. */
void dt_p2p_close(struct dt_comm *c)
{
    uint32_t passing;

    while ((passing = atomic_load(&c->passing)))
        dt_futex_wait(&c->passing, passing);
    for (int i = 0; c->channels && i < 2 * c->size; i++) {
        if (!c->channels[i])
            continue;
        dt_async_close(&c->channels[i]->async);
        dt_gpu_copies_close(&c->channels[i]->copies);
        dt_mesh_close(&c->channels[i]->mesh);
        dt_ring_close(c->channels[i]->shm.ring);
        free(c->channels[i]);
    }
    free(c->channels);
    c->channels = NULL;
}

/* ---- passing ---- */

static bool is_local(const struct dt_p2p *w)
{
    return dt_u32s_find(&w->comm->locals, (uint32_t)w->peer) >= 0;
}

/* Both sides make the same call. Reports on the receiving side name it as a receive. */
static void turn(struct dt_call *call, int giver)
{
    if (call->kind != DT_CALL_SEND)
        return;
    call->kind = DT_CALL_RECV;
    call->root = giver;
}

/* Names the call, and tells the peer if it is on this host. */
static void begin(struct dt_p2p *w, void *buf, size_t count, dt_dtype_t dtype)
{
    int64_t local = dt_u32s_find(&w->comm->locals, (uint32_t)w->peer);

    w->call = (struct dt_call){ .kind = DT_CALL_SEND,
                                .count = count,
                                .dtype = (uint8_t)dtype,
                                .root = w->giving ? w->peer : w->comm->rank,
                                .number = ++w->calls };
    w->told = w->call;
    if (!w->giving)
        turn(&w->told, w->peer);
    dt_ring_begin(w->shm.ring, &w->told);
    dt_ring_lasts(w->shm.ring);
    w->shm.algorithm = local >= 0 ? "shm" : NULL;
    if (local >= 0)
        dt_sendrecv_begin(&w->sendrecv, &w->shm, &w->call, buf, count * dt_dtype_size(dtype),
                          (uint32_t)local, w->giving);
}

static dt_result_t move(struct dt_p2p *w, void *buf)
{
    const struct dt_call *call = &w->call;

    if (w->shm.algorithm)
        return dt_sendrecv_end(&w->sendrecv);
    return w->giving ? dt_tcp_send(&w->mesh, call, buf, call->count, (uint32_t)w->peer)
                     : dt_tcp_recv(&w->mesh, call, buf, call->count, (uint32_t)w->peer);
}

/* Ends the communicator for the coll_error. */
static dt_result_t stop(struct dt_p2p *w, dt_result_t r)
{
    struct dt_comm *c = w->comm;

    dt_comm_stop(c, r, w->coll_error.rank, dt_last_error());
    dt_flow_fail(&w->mesh, r);
    dt_dump_failure(c->world, c->id);
    return r;
}

static dt_result_t fail(struct dt_p2p *w, struct dt_call *call)
{
    struct dt_comm *c = w->comm;

    turn(w->giving ? &w->coll_error.theirs : call, w->giving ? c->rank : w->peer);
    return stop(w, dt_error_report(c, &w->coll_error, call, w->shm.ring));
}

dt_result_t dt_p2p_give_up(struct dt_p2p *w)
{
    return stop(w, dt_error_report(w->comm, &w->coll_error, NULL, w->shm.ring));
}

/* Notes the wait for the agent, which tells which rank waits for which. The number tells a new wait
 * from the same one. */
static struct dt_hostshm_rank *noted_at(const struct dt_comm *c)
{
    return &c->shm.map.ranks[c->local_rank];
}

static uint64_t pair_of(uint64_t number, int peer, bool giving)
{
    return dt_hostshm_pair(number, (uint32_t)peer, giving ? DT_CALL_SEND : DT_CALL_RECV);
}

static void note(struct dt_comm *c, struct dt_pairnote *own, uint64_t now_ns)
{
    dt_pairnotes_enter(&c->notes, noted_at(c), own, now_ns);
}

static void unnote(struct dt_comm *c, struct dt_pairnote *own)
{
    dt_pairnotes_leave(&c->notes, noted_at(c), own);
}

void dt_p2p_watch(struct dt_comm *c, struct dt_p2p_watcher *watch)
{
    watch->comm = c;
    atomic_fetch_add(&c->passing, 1);
    watch->note =
        (struct dt_pairnote){ .pair = pair_of(watch->ticket + 1, watch->peer, watch->giving),
                              .limit_ms = watch->limit_ms };
    note(c, &watch->note, dt_clock_read(CLOCK_MONOTONIC_COARSE));
}

void dt_p2p_unwatch(struct dt_p2p_watcher *watch)
{
    if (!watch->comm)
        return;
    unnote(watch->comm, &watch->note);
    dt_p2p_passed(watch->comm);
}

static dt_result_t check_stopped(struct dt_p2p *w)
{
    uint32_t culprit;
    int stopped = dt_hostshm_stopped(&w->shm.map, &culprit);

    return stopped ? dt_coll_error(&w->coll_error, (dt_result_t)stopped, culprit) : DT_OK;
}

dt_result_t dt_p2p_pass(struct dt_p2p *w, void *buf, size_t count, dt_dtype_t dtype, bool watched)
{
    struct dt_pairnote own = { .since_ns = w->since_ns, .limit_ms = w->limit_ms };
    dt_result_t r = DT_OK;

    if (!w->begun) {
        begin(w, buf, count, dtype);
        r = check_stopped(w);
    }
    w->begun = false;
    own.pair = pair_of(w->calls, w->peer, w->giving);
    if (watched)
        note(w->comm, &own, dt_ring_begun(w->shm.ring));
    if (r == DT_OK)
        r = move(w, buf);
    dt_ring_end(w->shm.ring, r, w->shm.algorithm, w->shm.algorithm ? NULL : "tcp");
    if (r != DT_OK)
        r = fail(w, &w->call);
    if (watched)
        unnote(w->comm, &own); /* last, as in dt_comm_end */
    return r;
}

/* ---- later ---- */

/* Whether this rank need do nothing more except receive the peer's data. */
static bool tells_all_at_once(struct dt_p2p *w, void *buf, size_t count, dt_dtype_t dtype)
{
    begin(w, buf, count, dtype);
    w->begun = true;
    dt_sendrecv_step(&w->sendrecv);
    return dt_sendrecv_has_told(&w->sendrecv);
}

/* Begins a call that needs nothing more from this rank, or that has a thread. If the peer's call
 * does not fit and there is no thread, the call stays parked, and the thread that waits for it
 * reports that. */
static void begin_early(struct dt_p2p *w, struct dt_task *task, void *buf, size_t count,
                        dt_dtype_t dtype)
{
    w->parked = task;
    if (!tells_all_at_once(w, buf, count, dtype))
        (void)dt_p2p_unpark(w);
}

/* Whether these data fit into the pipe now. Only the thread that holds the lock writes to it. */
static bool fits_in(const struct dt_p2p *w, const void *buf, size_t bytes)
{
    uint32_t local = (uint32_t)dt_u32s_find(&w->comm->locals, (uint32_t)w->peer);

    return dt_sendrecv_fits_in(&w->shm, buf, bytes, local, w->giving);
}

dt_result_t dt_p2p_hand_in(struct dt_p2p *w, struct dt_task *task, void *buf, size_t count,
                           dt_dtype_t dtype)
{
    dt_result_t r = w->parked ? dt_p2p_unpark(w) : DT_OK;

    if (r != DT_OK)
        return r;
    task->channel = w;
    if (!buf || !is_local(w) || dt_hostshm_stopped(&w->shm.map, NULL) ||
        !dt_async_hold_back(&w->async, task))
        return dt_async_hand_in(&w->async, task);
    /* A call that has begun cannot be withdrawn if no thread can be started. */
    if (!fits_in(w, buf, count * dt_dtype_size(dtype)))
        r = dt_async_start(&w->async);
    if (r == DT_OK)
        begin_early(w, task, buf, count, dtype);
    else
        dt_ticketlock_undraw(&w->lock); /* the calls are numbered as they draw */
    return r;
}

bool dt_p2p_claim(struct dt_p2p *w, const struct dt_task *task, bool ripe)
{
    if (!task || w->parked != task)
        return false;
    if (ripe)
        dt_sendrecv_step(&w->sendrecv);
    if (ripe && !dt_sendrecv_is_over(&w->sendrecv))
        return false;
    w->parked = NULL;
    return true;
}

struct dt_task *dt_p2p_claim_ripe(struct dt_comm *c, struct dt_task *others)
{
    for (int i = 0; c->channels && i < 2 * c->size; i++) {
        struct dt_task *task = c->channels[i] ? c->channels[i]->parked : NULL;

        if (!task || !dt_p2p_claim(c->channels[i], task, true))
            continue;
        task->next = others;
        others = task;
    }
    return others;
}

dt_result_t dt_p2p_unpark(struct dt_p2p *w)
{
    dt_result_t r = dt_async_pass_on(&w->async, w->parked);

    if (r == DT_OK)
        w->parked = NULL;
    return r;
}

/* The communicator stays until the lock is released. */
void dt_p2p_make(struct dt_task *task)
{
    struct dt_p2p *w = task->channel;
    struct dt_comm *c = w->comm;

    atomic_fetch_add(&c->passing, 1);
    dt_async_make(&w->async, task);
    dt_p2p_passed(c);
}
