/* The ways between this rank and the others, on which calls between two ranks are made.
 *
 * From each rank to each other one there is a way, made when either needs it: an order of calls, a
 * pair of pipes or a connection that nothing else uses, and, once there are requests, a thread. So
 * none of these calls waits for one that goes elsewhere, or the other way, or for a collective. */
#ifndef DT_RUNTIME_WAYS_H
#define DT_RUNTIME_WAYS_H

#include "runtime/async.h"
#include "runtime/comm.h"
#include "runtime/ticketlock.h"

struct dt_way {
    struct dt_ticketlock lock; /* held by who makes a call */
    struct dt_async async;
    struct dt_comm *comm;
    int peer;
    bool giving; /* it goes to peer */

    /* under the lock */
    uint64_t calls;
    struct dt_trouble trouble;
    struct dt_shm shm; /* what of it concerns pipes; peer is on this host */
    struct dt_mesh mesh;
};

/* For a thread that keeps c in its slot (dt_context_see). NULL: out of memory. A call that has
 * drawn its number or been handed in there counts in c->passing, from then until dt_way_passed. */
struct dt_way *dt_way_find(struct dt_comm *c, int peer, bool giving);
void dt_way_passed(struct dt_comm *c);

/* Moves the data, for who holds the way's lock. watched: the agent is to know that this rank waits.
 */
dt_result_t dt_way_pass(struct dt_way *w, void *buf, size_t count, dt_dtype_t dtype, bool watched);

/* A thread waits for what another one does on a way: the agent is to know, and the communicator
 * stays for so long. */
struct dt_waywatch {
    int peer;
    bool giving;
    struct dt_comm *comm; /* NULL: it is not watched */
    int place;
};

/* For a thread that keeps c in its slot (dt_context_see). */
void dt_way_watch(struct dt_comm *c, struct dt_waywatch *watch);
void dt_way_unwatch(struct dt_waywatch *watch);

/* Waits until all calls are over, and frees the ways. No thread comes to c any more. */
void dt_ways_close(struct dt_comm *c);

#endif
