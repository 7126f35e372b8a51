/* The memory files of the communicators that the ranks of a host have made beside that of all
 * ranks. One is made when the first of its ranks asks, and goes when the last is done with it. */
#ifndef DT_AGENT_COMMSHM_H
#define DT_AGENT_COMMSHM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"
#include "runtime/wire/msg.h"

struct dt_commshm;

/* Of a job of np ranks. world: the memory of those that are here, which outlives this. */
struct dt_commshm *dt_commshm_create(uint32_t generation, uint32_t np,
                                     const struct dt_hostshm *world);
/* Accepts NULL. */
void dt_commshm_destroy(struct dt_commshm *c);

/* For one of so many local ranks of communicator comm, which has size ranks in all. Returns a
 * descriptor, which the caller closes, or -1 with errno. */
int dt_commshm_want(struct dt_commshm *c, uint32_t local_rank, uint64_t comm, uint32_t members,
                    uint32_t size);
/* One of them is done with it. Returns whether it is gone. */
bool dt_commshm_done(struct dt_commshm *c, uint32_t local_rank, uint64_t comm);
/* Whether this rank is one of so many that have the memory of this communicator, or, where comm is
 * 0, of all ranks. */
bool dt_commshm_shares(struct dt_commshm *c, uint32_t local_rank, uint64_t comm, uint32_t members);

/* Stops this communicator, or all and those yet to come where comm is 0; as of
 * dt_hostshm_stop_because. One that is not here is stopped when it comes: for that as long as some
 * rank has been making communicators (all who are to be in it do so, before anybody knows it), and
 * of some thousands at most. */
void dt_commshm_stop(struct dt_commshm *c, uint64_t comm, int code, uint32_t culprit,
                     const char *why);

/* The memory of the next communicator that one of its ranks has stopped, of which the launcher has
 * not been told yet (and now is); NULL: of all. */
const struct dt_hostshm *dt_commshm_untold(struct dt_commshm *c, uint64_t *comm);
/* A rank says why this one is stopped: whether the launcher has yet to be told (and now is). */
bool dt_commshm_tell_once(struct dt_commshm *c, uint64_t comm);

/* Adds to pong->comms those that are asked for (struct dt_msg_asked; of these that are not here,
 * the number alone), then those in which ranks wait, the longest first, as many as are to be in a
 * PONG; pong->more is how many it leaves out. Lowers pong->limit_ms. ranks: the job's, of this
 * host. */
void dt_commshm_look(struct dt_commshm *c, const struct dt_u32s *ranks, uint64_t now_ns,
                     const struct dt_msg_list *asked, struct dt_msg_pong *pong);
/* Sets inside[i] where the rank of this host with local rank i is in a call of one of them. */
void dt_commshm_inside(const struct dt_commshm *c, const struct dt_u32s *ranks, bool *inside);
/* The ranks were stopped, and go on. */
void dt_commshm_reset_waits(struct dt_commshm *c);

#endif
