/* The shared memory of communicators other than DT_WORLD that the ranks of a host have created. It
 * is created when the first of its ranks asks for it, and freed when the last one is done with it.
 */
#ifndef DT_AGENT_RANKLINK_COMMSHM_H
#define DT_AGENT_RANKLINK_COMMSHM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"
#include "runtime/wire/msg.h"

struct dt_commshm;

/* For a job of np ranks. world is the shared memory of all ranks of this host; it outlives the
 * result. */
struct dt_commshm *dt_commshm_create(uint32_t generation, uint32_t np,
                                     const struct dt_hostshm *world);
/* Accepts NULL. */
void dt_commshm_destroy(struct dt_commshm *c);

/* local_rank asks for the memory of communicator comm, which has size ranks in all, members of them
 * on this host. Returns a descriptor, which the caller closes, or -1 with errno. */
int dt_commshm_want(struct dt_commshm *c, uint32_t local_rank, uint64_t comm, uint32_t members,
                    uint32_t size);
/* A rank is done with the communicator. Returns whether it was the last one, so that the memory is
 * freed. */
bool dt_commshm_done(struct dt_commshm *c, uint32_t local_rank, uint64_t comm);
/* Returns whether this rank is one of the given number of ranks that share the memory of this
 * communicator, or, if comm is 0, of DT_WORLD. */
bool dt_commshm_shares(struct dt_commshm *c, uint32_t local_rank, uint64_t comm, uint32_t members);

/* Stops this communicator, or, if comm is 0, all that exist or will exist (see
 * dt_hostshm_stop_because). A communicator that does not exist here yet is stopped when it is
 * created. Until then the agent remembers it. When the first member learns the number of a
 * communicator, all members are already creating communicators. So the agent forgets the number
 * once it has seen each rank of this host at a time when the rank created none. It remembers some
 * thousands at most. */
void dt_commshm_stop(struct dt_commshm *c, uint64_t comm, int code, uint32_t culprit,
                     const char *why);

/* Returns the memory of a communicator that a rank of this host has stopped, if the launcher does
 * not know that yet, else NULL. From now on the launcher counts as knowing it. */
const struct dt_hostshm *dt_commshm_next_unreported(struct dt_commshm *c, uint64_t *comm);
/* A rank reports why this communicator is stopped. Returns whether that is new to the launcher.
 * From now on the launcher counts as knowing it. */
bool dt_commshm_report_once(struct dt_commshm *c, uint64_t comm);

/* Adds to pong->comms first the communicators in asked (struct dt_msg_asked; one that does not
 * exist here is added as a number alone), then those in which ranks wait, longest wait first, as
 * far as they fit into a PONG. pong->more counts those that do not fit. Lowers pong->limit_ms.
 * ranks are the job's ranks on this host. */
void dt_commshm_look(struct dt_commshm *c, const struct dt_u32s *ranks, uint64_t now_ns,
                     const struct dt_msg_list *asked, struct dt_msg_pong *pong);
/* Sets inside[i] if the rank with local rank i is in a call of one of the communicators. */
void dt_commshm_inside(const struct dt_commshm *c, const struct dt_u32s *ranks, bool *inside);
/* The ranks were stopped and continue. */
void dt_commshm_reset_waits(struct dt_commshm *c);

#endif
