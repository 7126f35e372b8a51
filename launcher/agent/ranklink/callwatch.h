/* Measures how long the ranks of this host have been in calls on one communicator. Ranks note their
 * calls in its shared memory. */
#ifndef DT_AGENT_RANKLINK_CALLWATCH_H
#define DT_AGENT_RANKLINK_CALLWATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"
#include "runtime/wire/msg.h"

struct dt_callwatch {         /* zero-initialise it */
    struct dt_callseen *seen; /* by local rank of the communicator; NULL before the first look */
    uint64_t first_ns;        /* time of the first look; waiting before that does not count */
};

/* Looks at all ranks. Considers calls that a rank was already in at the previous look, and returns
 * when the oldest of them began, or 0 if there is none. */
uint64_t dt_callwatch_look(struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t now_ns);
/* Fills report with what was seen at the last look. ranks are the job's ranks on this host. A
 * communicator that is still being created has no ranks. Free the contents of report with
 * dt_callwatch_free_report. */
void dt_callwatch_report(const struct dt_callwatch *w, const struct dt_hostshm *shm, uint64_t comm,
                         const struct dt_u32s *ranks, uint64_t now_ns, struct dt_msg_comm *report);
/* Returns whether the rank is in a call that waits for others. */
bool dt_callwatch_is_inside(const struct dt_hostshm_rank *r);
/* Lowers *limit_ms (0: no limit) to the lowest limit that the communicator's ranks gave calls that
 * were started, or may still be started. Ignores stopped communicators. */
void dt_callwatch_lower(const struct dt_hostshm *shm, uint32_t *limit_ms);
void dt_callwatch_free_report(struct dt_msg_list *comms);
/* The processes were stopped and continue: waiting times start anew. */
void dt_callwatch_reset(struct dt_callwatch *w);

#endif
