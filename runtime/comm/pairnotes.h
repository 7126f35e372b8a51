/* The calls between two ranks that threads of this rank wait in, noted for the agent in the
 * communicator's memory. There are DT_HOSTSHM_PAIRS places, for those that are due soonest: who
 * comes when all are taken takes the place of one that is due later, or waits for one. Noted again,
 * a wait is as old as it is. */
#ifndef DT_COMM_PAIRNOTES_H
#define DT_COMM_PAIRNOTES_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

struct dt_pairnote {   /* on the stack of the thread that waits, which sets the first three */
    uint64_t pair;     /* as of dt_hostshm_pair */
    uint64_t since_ns; /* of CLOCK_MONOTONIC; 0: now */
    uint32_t limit_ms; /* as in struct dt_hostshm_rank */
    _Atomic int place; /* -1: it waits for one */
    struct dt_pairnote *next; /* of those that wait for one */
};

struct dt_pairnotes { /* of a communicator; zero-initialised */
    _Atomic(struct dt_pairnote *) holders[DT_HOSTSHM_PAIRS];
    struct dt_pairnote *first; /* of those that wait for a place, the next one due */
    _Atomic uint32_t n;        /* of these */
};

/* For any thread; at: this rank's in the communicator's memory. now_ns: some milliseconds old at
 * most, for to read the time anew may cost more than all the rest. */
void dt_pairnotes_enter(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note, uint64_t now_ns);
void dt_pairnotes_leave(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note);

#endif
