/* The deaths of one generation, and which of them is the cause of the others. Pure. */
#ifndef DT_JOB_STATE_DEATHS_H
#define DT_JOB_STATE_DEATHS_H

#include <stddef.h>

#include "launcher/watch/cause.h"

struct dt_deaths {
    struct dt_death *v;
    size_t n;
    int causes[2];  /* if no ranks wait for each other, and if some do; -1: none */
    bool lost_peer; /* a call had failed in a rank that has died */
};

void dt_deaths_init(struct dt_deaths *d, size_t most); /* most: in a generation */
void dt_deaths_add(struct dt_deaths *d, const struct dt_death *death);
/* The cause so far, or NULL: nothing has failed. linked_alive: some rank that called dt_init is
 * alive; it waits for the others. */
const struct dt_death *dt_deaths_cause(const struct dt_deaths *d, bool linked_alive);
void dt_deaths_forget(struct dt_deaths *d); /* a generation begins */
void dt_deaths_free(struct dt_deaths *d);

#endif
