/* Tells the agent which sends and receives this rank's threads are waiting in. The notes are in the
 * communicator's shared memory, which has DT_HOSTSHM_PAIRS places. If there are more waits, those
 * that are due first get the places: a new wait replaces one that is due later, or queues for a
 * place. A wait keeps its age when it is noted again. */
#ifndef DT_COMM_PAIRNOTES_H
#define DT_COMM_PAIRNOTES_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

struct dt_pairnote {          /* on the stack of the waiting thread, which sets the first three */
    uint64_t pair;            /* from dt_hostshm_pair */
    uint64_t since_ns;        /* CLOCK_MONOTONIC; 0: now */
    uint32_t limit_ms;        /* like limit_ms of struct dt_hostshm_rank */
    _Atomic int place;        /* -1: it queues for a place */
    struct dt_pairnote *next; /* in the queue */
};

struct dt_pairnotes { /* of a communicator; zero-initialised */
    _Atomic(struct dt_pairnote *) holders[DT_HOSTSHM_PAIRS];
    struct dt_pairnote *first; /* the queue, in the order in which waits are due */
    _Atomic uint32_t n;        /* length of the queue */
};

/* For any thread. at: this rank's entry in the communicator's memory. now_ns may be some
 * milliseconds old, because reading the clock may cost more than the rest. */
void dt_pairnotes_enter(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note, uint64_t now_ns);
void dt_pairnotes_leave(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note);

#endif
