/* The deaths of one generation, and which of them is the cause of the others. Pure. */
#ifndef DT_JOB_STATE_DEATHS_H
#define DT_JOB_STATE_DEATHS_H

#include <stddef.h>

#include "launcher/watch/cause.h"

struct dt_deaths {
    struct dt_death *v;
    size_t n;
    /* index of the cause: [0] if no ranks wait for each other, [1] if some do; -1: none */
    int causes[2];
    bool lost_peer; /* a rank that died had a call return DT_ERR_PEER */
};

/* most: the largest number of deaths in a generation */
void dt_deaths_init(struct dt_deaths *d, size_t most);
void dt_deaths_add(struct dt_deaths *d, const struct dt_death *death);
/* Returns the cause so far, or NULL if nothing has failed. linked_alive: some rank that called
 * dt_init is alive, so it waits for the others. */
const struct dt_death *dt_deaths_cause(const struct dt_deaths *d, bool linked_alive);
/* Notes that the last lines of this rank, which is among the deaths, say that it lost a peer. */
void dt_deaths_say_peer_lost(struct dt_deaths *d, uint32_t rank);
/* Returns the first death of a rank by exit(0), or NULL. */
const struct dt_death *dt_deaths_first_done(const struct dt_deaths *d);
void dt_deaths_forget(struct dt_deaths *d); /* a generation begins */
void dt_deaths_free(struct dt_deaths *d);

#endif
