/* Channels, on which a rank sends to other ranks and receives from them, or from itself.
 *
 * Each ordered pair of ranks has a channel, made when either rank first needs it. It has its own
 * order of calls, its own pair of pipes or connection, and a thread once there are nonblocking
 * calls. So no send or receive waits for another peer, for the other direction, or for a
 * collective. */
#ifndef DT_P2P_P2P_H
#define DT_P2P_P2P_H

#include "runtime/base/ticketlock.h"
#include "runtime/comm/async.h"
#include "runtime/comm/comm.h"
#include "runtime/gpu/device/copies.h"
#include "runtime/shm/sendrecv.h"

struct dt_p2p {
    struct dt_ticketlock lock; /* held by the thread that executes a call */
    struct dt_async async;
    struct dt_comm *comm;
    int peer;
    int64_t local_peer; /* its local rank; -1: it is on another host */
    bool sending;       /* this rank sends to peer */

    /* protected by the lock */
    uint64_t calls; /* each call has drawn a ticket; its number is the ticket plus one */
    /* of the call that the agent watches: its limit, and when it began (struct dt_pairnote) */
    uint32_t limit_ms;
    uint64_t since_ns;
    struct dt_coll_error coll_error;
    struct dt_shm shm; /* the fields that pipes use, if peer is on this host */
    struct dt_mesh mesh;
    struct dt_call call;         /* the newest call, as both sides name it */
    struct dt_call reported;     /* the newest call, as this side reports it */
    bool begun;                  /* the call has begun, and the next fields belong to it */
    struct dt_sendrecv sendrecv; /* if peer is on this host */
    struct dt_gpu_copies copies; /* for calls on GPU memory */

    /* For threads that keep the communicator in its slot: a task that holds the lock, and from
     * which the peer needs nothing more; NULL: none. */
    struct dt_task *parked;
};

/* The channel to or from peer. For a thread that keeps c in its slot (dt_context_visit). NULL: out
 * of memory. A call that draws a number or is submitted there counts in c->p2p_inflight. */
struct dt_p2p *dt_p2p_find(struct dt_comm *c, int peer, bool sending);

/* Submits a task that moves these data, for such a thread. buf NULL: the task itself copies the
 * data to or from other memory. Between ranks of one host the task begins at once if the channel is
 * free. If the peer then needs nothing more from it, the task is parked for the thread that waits
 * for it. The channel's thread would not complete it sooner, and would use a CPU. */
dt_result_t dt_p2p_submit(struct dt_p2p *ch, struct dt_task *task, void *buf, size_t count,
                          dt_dtype_t dtype);
/* Also for such a thread: takes the task if it is parked. The caller then calls dt_p2p_run.
 * completed: only if that will not wait. */
bool dt_p2p_take_parked(struct dt_p2p *ch, const struct dt_task *task, bool completed);
void dt_p2p_run(struct dt_task *task);
/* Likewise: lets the channel's thread execute the parked task. */
dt_result_t dt_p2p_unpark(struct dt_p2p *ch);
/* Likewise: takes all parked tasks of c that will not wait. They are linked by next. */
struct dt_task *dt_p2p_take_all_completed(struct dt_comm *c, struct dt_task *tasks);

/* Moves the data. The caller holds the channel's lock. watched: the agent is told that this rank
 * waits. */
dt_result_t dt_p2p_transfer(struct dt_p2p *ch, void *buf, size_t count, dt_dtype_t dtype,
                            bool watched);
/* Ends the communicator with ch->coll_error, which came from outside of a call. The caller holds
 * the channel's lock. Returns the coll_error's code. */
dt_result_t dt_p2p_fail(struct dt_p2p *ch);

/* A thread waits for another thread's call on a channel. The agent is told, and the communicator
 * stays meanwhile. */
struct dt_p2p_watcher {
    int peer;
    bool sending;
    uint32_t ticket;      /* of the call that it waits for, in the channel's lock */
    uint32_t limit_ms;    /* how long it may wait */
    struct dt_comm *comm; /* NULL: not watched */
    struct dt_pairnote note;
};

/* For a thread that keeps c in its slot (dt_context_visit). */
void dt_p2p_watch(struct dt_comm *c, struct dt_p2p_watcher *watch);
void dt_p2p_unwatch(struct dt_p2p_watcher *watch);

/* Waits until all calls are over, and tells the agent which peers it waits for. c is shut in its
 * slot. */
void dt_p2p_finish(struct dt_comm *c);
/* Frees the channels. No thread may use c any more. */
void dt_p2p_close(struct dt_comm *c);

#endif
