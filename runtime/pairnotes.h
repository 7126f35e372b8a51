/* The calls between two ranks that threads of this rank wait in, noted for the agent in the
 * communicator's memory. There are DT_HOSTSHM_PAIRS places: who comes when all are taken gets the
 * next that is left, so that a wait is noted unless as many others last as long. */
#ifndef DT_RUNTIME_PAIRNOTES_H
#define DT_RUNTIME_PAIRNOTES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

struct dt_pairnote { /* on the stack of the thread that waits */
    uint64_t pair;
    uint32_t limit_ms;
    int place; /* -1: it waits for one */
    bool late;
    struct dt_pairnote *next;
};

struct dt_pairnotes {          /* of a communicator; zero-initialised */
    struct dt_pairnote *first; /* of those that wait for a place */
    _Atomic uint32_t n;
};

/* For any thread. at: this rank's in the communicator's memory; pair: as of dt_hostshm_pair, which
 * may wait for so long. */
void dt_pairnotes_enter(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note, uint64_t pair, uint32_t limit_ms);
void dt_pairnotes_leave(struct dt_pairnotes *all, struct dt_hostshm_rank *at,
                        struct dt_pairnote *note);

#endif
