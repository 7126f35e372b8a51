/* For how long the ranks of this host have been in the calls of one communicator, from what they
 * note in its memory. */
#ifndef DT_AGENT_CALLWATCH_H
#define DT_AGENT_CALLWATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"
#include "runtime/wire/msg.h"

struct dt_callwatch {         /* all zero at first */
    struct dt_callseen *seen; /* by local rank of the communicator; NULL: nobody has looked */
    uint64_t first_ns;        /* the first look: what was before does not count */
};

/* Since when the rank that waits longest has been in a call that it was in at the last look; 0:
 * none is. */
uint64_t dt_callwatch_look(struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t now_ns);
/* What was seen at the last look. ranks: the job's ranks of this host. The ranks of a communicator
 * that is still being made are none. dt_callwatch_free_told frees what told holds. */
void dt_callwatch_tell(const struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t comm,
                       const struct dt_u32s *ranks, uint64_t now_ns, struct dt_msg_comm *told);
/* Whether the rank is in a call that waits for others. */
bool dt_callwatch_is_inside(const struct dt_hostshm_rank *r);
/* Lowers *limit_ms (0: there is none) to the least that its ranks have given calls that have been
 * asked for, or may be, unless those have been stopped. */
void dt_callwatch_lower(const struct dt_hostshm *shm, uint32_t *limit_ms);
void dt_callwatch_free_told(struct dt_msg_list *comms);
/* The processes were stopped, and go on: waits begin anew. */
void dt_callwatch_reset(struct dt_callwatch *w);

#endif
