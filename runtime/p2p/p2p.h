/* The channels on which a rank sends to, and receives from, other ranks or itself.
 *
 * Each ordered pair of ranks has a channel, made when either rank needs it: an order of calls, a
 * pair of pipes or a connection that nothing else uses, and a thread once there are requests. So no
 * send or receive waits for another peer, for the other direction, or for a collective. */
#ifndef DT_P2P_P2P_H
#define DT_P2P_P2P_H

#include "runtime/base/ticketlock.h"
#include "runtime/comm/async.h"
#include "runtime/comm/comm.h"
#include "runtime/gpu/copies.h"
#include "runtime/shm/sendrecv.h"

struct dt_p2p {
    struct dt_ticketlock lock; /* held by the thread that makes a call */
    struct dt_async async;
    struct dt_comm *comm;
    int peer;
    bool giving; /* this rank sends to peer */

    /* under the lock */
    uint64_t calls;    /* each has drawn a number there, so that its own is one more */
    uint32_t limit_ms; /* of one that is watched (struct dt_comm), */
    uint64_t since_ns; /* and since when (struct dt_pairnote) */
    struct dt_coll_error coll_error;
    struct dt_shm shm; /* what of it concerns pipes; peer is on this host */
    struct dt_mesh mesh;
    struct dt_call call;         /* the newest, as both sides name it, */
    struct dt_call told;         /* and as its own side does */
    bool begun;                  /* what follows is of that call, and it has begun */
    struct dt_sendrecv sendrecv; /* peer is on this host */
    struct dt_gpu_copies copies; /* of calls on GPU memory */

    /* For threads that keep the communicator in its slot: a task that holds the lock, of which the
     * peer needs nothing more; NULL: there is none. */
    struct dt_task *parked;
};

/* For a thread that keeps c in its slot (dt_context_see). NULL: out of memory. A call that has
 * drawn its number or been handed in there counts in c->passing, from then until dt_p2p_passed. */
struct dt_p2p *dt_p2p_find(struct dt_comm *c, int peer, bool giving);
void dt_p2p_passed(struct dt_comm *c);

/* Hands a task in, for such a thread, that moves these data; buf NULL: it gets them first, or puts
 * them elsewhere, by itself. Between ranks of a host it begins at
 * once, if the channel is free. Where the peer needs nothing more of it then, it is parked for
 * whoever waits for it: the channel's thread would come to its end no sooner, and take a processor.
 */
dt_result_t dt_p2p_hand_in(struct dt_p2p *w, struct dt_task *task, void *buf, size_t count,
                           dt_dtype_t dtype);
/* For such a thread, too: takes a task out of where it is parked, if it is; the caller calls
 * dt_p2p_make. ripe: only if that will not wait. */
bool dt_p2p_claim(struct dt_p2p *w, const struct dt_task *task, bool ripe);
void dt_p2p_make(struct dt_task *task);
/* Likewise: has the channel's thread make a task that is parked there. */
dt_result_t dt_p2p_unpark(struct dt_p2p *w);
/* Likewise: claims all of c that are ripe; they hang together by next. */
struct dt_task *dt_p2p_claim_ripe(struct dt_comm *c, struct dt_task *others);

/* Moves the data, for who holds the channel's lock. watched: the agent is to know that this rank
 * waits.
 */
dt_result_t dt_p2p_pass(struct dt_p2p *w, void *buf, size_t count, dt_dtype_t dtype, bool watched);
/* For who holds it, too: ends the communicator for w->coll_error, which is none of a call's.
 * Returns the coll_error's code. */
dt_result_t dt_p2p_give_up(struct dt_p2p *w);

/* A thread waits for what another one does on a channel: the agent is to know, and the communicator
 * stays for so long. */
struct dt_p2p_watcher {
    int peer;
    bool giving;
    uint32_t ticket;      /* in the channel's lock, of the call whose end it waits for */
    uint32_t limit_ms;    /* for how long it may wait */
    struct dt_comm *comm; /* NULL: it is not watched */
    struct dt_pairnote note;
};

/* For a thread that keeps c in its slot (dt_context_see). */
void dt_p2p_watch(struct dt_comm *c, struct dt_p2p_watcher *watch);
void dt_p2p_unwatch(struct dt_p2p_watcher *watch);

/* Waits until all calls are over, while c is shut in its slot: the agent is to know for whom. */
void dt_p2p_finish(struct dt_comm *c);
/* Frees the channels. No thread uses c any more. */
void dt_p2p_close(struct dt_comm *c);

#endif
