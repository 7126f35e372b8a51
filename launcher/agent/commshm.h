/* The memory files of the communicators that the ranks of a host have made beside that of all
 * ranks. One is made when the first of its ranks asks, and goes when the last is done with it. */
#ifndef DT_AGENT_COMMSHM_H
#define DT_AGENT_COMMSHM_H

#include <stdint.h>

struct dt_commshm;

struct dt_commshm *dt_commshm_create(uint32_t generation, uint32_t local_size);
/* Accepts NULL. */
void dt_commshm_destroy(struct dt_commshm *c);

/* For one of so many local ranks of communicator comm. Returns a descriptor, which the caller
 * closes, or -1 with errno. */
int dt_commshm_want(struct dt_commshm *c, uint64_t comm, uint32_t members);
/* One of them is done with it. */
void dt_commshm_done(struct dt_commshm *c, uint64_t comm);

/* Stops this communicator, or all and those yet to come where comm is 0; as of
 * dt_hostshm_stop_because. */
void dt_commshm_stop(struct dt_commshm *c, uint64_t comm, int code, uint32_t culprit,
                     const char *why);

#endif
