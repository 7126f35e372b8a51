/* Ranks that are alive but never come to a call for which the others wait. dtrun says which rank
 * waits for which. When --collective-timeout is over, the calls return DT_ERR_TIMEOUT and the rank
 * that has not come counts as lost. A limit that the program has given a communicator ends only the
 * calls on that communicator, unless it is the communicator of all ranks. */
#ifndef DT_JOB_HANG_DETECT_H
#define DT_JOB_HANG_DETECT_H

#include "launcher/job/core/core.h"
#include "launcher/job/state/deaths.h"
#include "launcher/watch/wait_graph.h"

struct dt_hang_detect {
    struct dt_core *core;
    struct dt_deaths *deaths; /* a rank that hangs is added to them */
    struct dt_wait_graph waits;
    bool said_more; /* not all communicators can be watched; once in a job */
    char *text;     /* which rank waited for which, when a rank hung; or NULL */
};

void dt_hang_detect_init(struct dt_hang_detect *d, struct dt_core *core, struct dt_deaths *deaths);
void dt_hang_detect_free(struct dt_hang_detect *d);

void dt_hang_detect_note(struct dt_hang_detect *d, const struct dt_hostlink *h,
                         const struct dt_msg_pong *m);
/* Whether a PONG describes the running generation, and answers a PING sent after it began. */
bool dt_hang_detect_is_current(const struct dt_hang_detect *d, const struct dt_msg_pong *m);
/* LIMIT: calls on the host may wait for ms. Returns whether that is less than was known. */
bool dt_hang_detect_limit(struct dt_hang_detect *d, const struct dt_hostlink *h, uint32_t ms);
/* Adds to a PING the communicators that the agents are to report; the caller frees ping->comms.v.
 */
void dt_hang_detect_ask(const struct dt_hang_detect *d, struct dt_msg_ping *ping);
/* How often to look, so that a limit is noticed soon after it is over; 0: there is no limit. */
uint64_t dt_hang_detect_look_ms(const struct dt_hang_detect *d);
/* Checks all ranks. Do not call it during a pause. */
void dt_hang_detect_watch(struct dt_hang_detect *d);
/* A generation begins, or all ranks were stopped. */
void dt_hang_detect_forget(struct dt_hang_detect *d);

#endif
