#include "runtime/p2p/p2p.h"

#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/error.h"
#include "runtime/comm/error_report.h"
#include "runtime/comm/slots.h"
#include "runtime/diag/dump.h"
#include "runtime/kernels/dtype.h"
#include "runtime/shm/sendrecv.h"
#include "runtime/tcp/alltoall.h"
#include "runtime/tcp/flow.h"

/* ---- making ---- */

/* Two ranks have two sets of pipes and connections. One set is for the data that the lower rank
 * sends. A rank has two pipes to itself: its send writes to one, its receive to the other. */
static uint32_t direction(const struct dt_p2p *ch)
{
    return (ch->comm->rank < ch->peer) != ch->sending;
}

/* Reads only fields that do not change while other threads make collectives. */
static void init_channel(struct dt_p2p *ch)
{
    const struct dt_comm *c = ch->comm;

    ch->shm =
        (struct dt_shm){ .map = c->shm.map,
                         .comm = c->shm.comm,
                         .me = c->shm.me,
                         .n = c->shm.n,
                         .ranks = c->shm.ranks,
                         .round = 2, /* all ranks have met */
                         .spins = c->shm.spins,
                         .yields = c->shm.yields,
                         .least_direct = ch->peer == c->rank ? SIZE_MAX : c->tuning.shm_direct,
                         .pipes = direction(ch),
                         .coll_error = &ch->coll_error };
    ch->mesh = (struct dt_mesh){ .comm = c->mesh.comm,
                                 .number = 1 + direction(ch),
                                 .me = c->mesh.me,
                                 .size = c->mesh.size,
                                 .streams = c->streams,
                                 .ranks = c->mesh.ranks,
                                 .addrs = c->mesh.addrs,
                                 .listener = c->mesh.listener,
                                 .alarm = c->mesh.alarm,
                                 .spins = c->mesh.spins };
    ch->mesh.alarm.coll_error = &ch->coll_error;
}

struct dt_p2p *dt_p2p_find(struct dt_comm *c, int peer, bool sending)
{
    size_t at = 2 * (size_t)peer + sending;
    struct dt_p2p *ch;

    if (!c->channels)
        c->channels = calloc(2 * (size_t)c->size, sizeof(struct dt_p2p *));
    if (!c->channels || c->channels[at])
        return c->channels ? c->channels[at] : NULL;
    c->channels[at] = ch = calloc(1, sizeof *ch);
    if (!ch)
        return NULL;
    ch->comm = c;
    ch->peer = peer;
    ch->local_peer = dt_u32s_find(&c->locals, (uint32_t)peer);
    ch->sending = sending;
    dt_async_open(&ch->async, &ch->lock);
    init_channel(ch);
    ch->shm.ring = dt_ring_open(c->id);
    return ch;
}

/* ---- ending ---- */

struct last_call {
    struct dt_p2p *channel;
    struct dt_task *parked;
    struct dt_p2p_watcher watch;
};

static void take_parked_and_watch(struct dt_comm *c, void *arg)
{
    struct last_call *l = arg;

    l->parked = l->channel->parked;
    dt_p2p_take_parked(l->channel, l->parked, false);
    dt_p2p_watch(c, &l->watch);
}

static void finish_channel(struct dt_p2p *ch)
{
    uint32_t number = dt_ticketlock_draw(&ch->lock);
    struct last_call l = { .channel = ch,
                           .watch = { .peer = ch->peer,
                                      .sending = ch->sending,
                                      .ticket = number - 1,
                                      .limit_ms = ch->comm->limit_ms } };

    if (!dt_ticketlock_is_due(&ch->lock, number))
        dt_slot_visit(ch->comm->slot->handle, take_parked_and_watch, &l);
    if (l.parked)
        dt_p2p_run(l.parked);
    dt_ticketlock_await(&ch->lock, number);
    dt_ticketlock_leave(&ch->lock);
    dt_p2p_unwatch(&l.watch);
}

void dt_p2p_finish(struct dt_comm *c)
{
    for (int i = 0; c->channels && i < 2 * c->size; i++) {
        if (c->channels[i])
            finish_channel(c->channels[i]);
    }
}

/* A thread that waited for a completed call may still be in dt_p2p_unwatch. */
void dt_p2p_close(struct dt_comm *c)
{
    dt_inflight_await(&c->p2p_inflight);
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

/* ---- transfers ---- */

static bool is_local(const struct dt_p2p *ch)
{
    return ch->local_peer >= 0;
}

/* Both sides make the same call. Reports on the receiving side name it as a receive. */
static void name_as_receive(struct dt_call *call, int sender)
{
    if (call->kind != DT_CALL_SEND)
        return;
    call->kind = DT_CALL_RECV;
    call->root = sender;
}

/* Names the call, and begins it if the peer is on this host. */
static void begin_call(struct dt_p2p *ch, void *buf, size_t count, dt_dtype_t dtype)
{
    ch->call = (struct dt_call){ .kind = DT_CALL_SEND,
                                 .count = count,
                                 .dtype = (uint8_t)dtype,
                                 .root = ch->sending ? ch->peer : ch->comm->rank,
                                 .number = ++ch->calls };
    ch->reported = ch->call;
    if (!ch->sending)
        name_as_receive(&ch->reported, ch->peer);
    dt_ring_begin(ch->shm.ring, &ch->reported);
    dt_ring_mark_long(ch->shm.ring);
    ch->shm.algorithm = is_local(ch) ? "shm" : NULL;
    if (is_local(ch))
        dt_sendrecv_begin(&ch->sendrecv, &ch->shm, &ch->call, buf, count * dt_dtype_size(dtype),
                          (uint32_t)ch->local_peer, ch->sending);
}

static dt_result_t move_data(struct dt_p2p *ch, void *buf)
{
    const struct dt_call *call = &ch->call;

    if (is_local(ch))
        return dt_sendrecv_end(&ch->sendrecv);
    return ch->sending ? dt_tcp_send(&ch->mesh, call, buf, call->count, (uint32_t)ch->peer)
                       : dt_tcp_recv(&ch->mesh, call, buf, call->count, (uint32_t)ch->peer);
}

/* Ends the communicator, with the channel's coll_error as the reason. */
static dt_result_t stop_comm(struct dt_p2p *ch, dt_result_t r)
{
    struct dt_comm *c = ch->comm;

    dt_comm_stop(c, r, ch->coll_error.rank, dt_last_error());
    dt_flow_fail(&ch->mesh, r);
    dt_dump_failure(c->world, c->id);
    return r;
}

static dt_result_t fail_call(struct dt_p2p *ch, struct dt_call *call)
{
    struct dt_comm *c = ch->comm;

    name_as_receive(ch->sending ? &ch->coll_error.theirs : call, ch->sending ? c->rank : ch->peer);
    return stop_comm(ch, dt_error_report(c, &ch->coll_error, call, ch->shm.ring));
}

dt_result_t dt_p2p_fail(struct dt_p2p *ch)
{
    return stop_comm(ch, dt_error_report(ch->comm, &ch->coll_error, NULL, ch->shm.ring));
}

static struct dt_hostshm_rank *own_hostshm_rank(const struct dt_comm *c)
{
    return &c->shm.map.ranks[c->local_rank];
}

static uint64_t pair_of(uint64_t number, int peer, bool sending)
{
    return dt_hostshm_pair(number, (uint32_t)peer, sending ? DT_CALL_SEND : DT_CALL_RECV);
}

/* Shows the wait to the agent, which reports which rank waits for which. By the number in the pair
 * the agent recognises a new wait. */
static void note_wait(struct dt_comm *c, struct dt_pairnote *own, uint64_t now_ns)
{
    dt_pairnotes_enter(&c->notes, own_hostshm_rank(c), own, now_ns);
}

static void unnote_wait(struct dt_comm *c, struct dt_pairnote *own)
{
    dt_pairnotes_leave(&c->notes, own_hostshm_rank(c), own);
}

void dt_p2p_watch(struct dt_comm *c, struct dt_p2p_watcher *watch)
{
    watch->comm = c;
    dt_inflight_begin(&c->p2p_inflight);
    watch->note =
        (struct dt_pairnote){ .pair = pair_of(watch->ticket + 1, watch->peer, watch->sending),
                              .limit_ms = watch->limit_ms };
    note_wait(c, &watch->note, dt_clock_read(CLOCK_MONOTONIC_COARSE));
}

void dt_p2p_unwatch(struct dt_p2p_watcher *watch)
{
    if (!watch->comm)
        return;
    unnote_wait(watch->comm, &watch->note);
    dt_inflight_end(&watch->comm->p2p_inflight);
}

dt_result_t dt_p2p_transfer(struct dt_p2p *ch, void *buf, size_t count, dt_dtype_t dtype,
                            bool watched)
{
    struct dt_pairnote own = { .since_ns = ch->since_ns, .limit_ms = ch->limit_ms };
    dt_result_t r = DT_OK;

    if (!ch->begun) {
        begin_call(ch, buf, count, dtype);
        r = dt_comm_check_stop(ch->comm, &ch->coll_error);
    }
    ch->begun = false;
    own.pair = pair_of(ch->calls, ch->peer, ch->sending);
    if (watched)
        note_wait(ch->comm, &own, dt_ring_begun(ch->shm.ring));
    if (r == DT_OK)
        r = move_data(ch, buf);
    dt_ring_end(ch->shm.ring, r, ch->shm.algorithm, is_local(ch) ? NULL : "tcp");
    if (r != DT_OK)
        r = fail_call(ch, &ch->call);
    if (watched)
        unnote_wait(ch->comm, &own); /* last, as in dt_comm_end */
    return r;
}

/* ---- nonblocking calls ---- */

/* Begins the call and does what it can without waiting. Returns whether the peer needs nothing more
 * from this rank. */
static bool begin_without_waiting(struct dt_p2p *ch, void *buf, size_t count, dt_dtype_t dtype)
{
    begin_call(ch, buf, count, dtype);
    ch->begun = true;
    dt_sendrecv_step(&ch->sendrecv);
    return dt_sendrecv_has_sent_all(&ch->sendrecv);
}

/* Begins a call whose data fit into the pipe, or for which there is a thread. If the peer still
 * needs something from this rank, or the calls do not match, the channel's thread completes it.
 * Otherwise, or without such a thread, it stays parked until a thread waits for it and completes
 * it. */
static void begin_early(struct dt_p2p *ch, struct dt_task *task, void *buf, size_t count,
                        dt_dtype_t dtype)
{
    dt_error_info_t before;

    ch->parked = task;
    if (begin_without_waiting(ch, buf, count, dtype))
        return;
    dt_error_save(&before); /* the call has begun, so it is no failure that there is no thread */
    if (dt_p2p_unpark(ch) != DT_OK)
        dt_error_restore(&before);
}

/* Whether these data fit into the pipe now. Only the thread that holds the lock writes to it. */
static bool fits_pipe(const struct dt_p2p *ch, const void *buf, size_t bytes)
{
    return dt_sendrecv_fits_pipe(&ch->shm, buf, bytes, (uint32_t)ch->local_peer, ch->sending);
}

dt_result_t dt_p2p_submit(struct dt_p2p *ch, struct dt_task *task, void *buf, size_t count,
                          dt_dtype_t dtype)
{
    dt_result_t r = ch->parked ? dt_p2p_unpark(ch) : DT_OK;

    if (r != DT_OK)
        return r;
    task->channel = ch;
    if (!buf || !is_local(ch) || dt_comm_stopped(ch->comm) || !dt_async_hold_back(&ch->async, task))
        return dt_async_submit(&ch->async, task);
    /* The thread is started first, because a call that has begun cannot be withdrawn. */
    if (!fits_pipe(ch, buf, count * dt_dtype_size(dtype)))
        r = dt_async_start(&ch->async);
    if (r == DT_OK)
        begin_early(ch, task, buf, count, dtype);
    else
        dt_ticketlock_undraw(&ch->lock); /* the ticket is the call's number */
    return r;
}

bool dt_p2p_take_parked(struct dt_p2p *ch, const struct dt_task *task, bool completed)
{
    if (!task || ch->parked != task)
        return false;
    if (completed)
        dt_sendrecv_step(&ch->sendrecv);
    if (completed && !dt_sendrecv_is_over(&ch->sendrecv))
        return false;
    ch->parked = NULL;
    return true;
}

struct dt_task *dt_p2p_take_all_completed(struct dt_comm *c, struct dt_task *tasks)
{
    for (int i = 0; c->channels && i < 2 * c->size; i++) {
        struct dt_task *task = c->channels[i] ? c->channels[i]->parked : NULL;

        if (!task || !dt_p2p_take_parked(c->channels[i], task, true))
            continue;
        task->next = tasks;
        tasks = task;
    }
    return tasks;
}

dt_result_t dt_p2p_unpark(struct dt_p2p *ch)
{
    dt_result_t r = dt_async_pass_on(&ch->async, ch->parked);

    if (r == DT_OK)
        ch->parked = NULL;
    return r;
}

/* The communicator stays until the lock is released. */
void dt_p2p_run(struct dt_task *task)
{
    struct dt_p2p *ch = task->channel;
    struct dt_comm *c = ch->comm;

    dt_inflight_begin(&c->p2p_inflight);
    dt_async_make(&ch->async, task);
    dt_inflight_end(&c->p2p_inflight);
}
