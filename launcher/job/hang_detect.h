/* Detects ranks that are alive but never reach a call in which the others wait. dtrun says which
 * rank waits for which. When --collective-timeout is over, the calls return DT_ERR_TIMEOUT, and the
 * rank that did not reach the call counts as lost. If the program itself has set a limit for a
 * communicator other than DT_WORLD, only the calls on that communicator end. Calls that do not
 * match also end. */
#ifndef DT_JOB_HANG_DETECT_H
#define DT_JOB_HANG_DETECT_H

#include "launcher/job/core/core.h"
#include "launcher/job/state/deaths.h"
#include "launcher/job/state/failed_calls.h"
#include "launcher/watch/wait_graph.h"

struct dt_hang_detect {
    struct dt_core *core;
    struct dt_deaths *deaths;      /* receives the ranks that hang */
    struct dt_failed_calls *calls; /* receives the calls that dtrun ends */
    struct dt_wait_graph waits;
    bool said_more; /* the user was told that not all communicators can be watched; once in a job */
    char *text;     /* which rank waited for which, if a rank hung; else NULL */
};

void dt_hang_detect_init(struct dt_hang_detect *d, struct dt_core *core, struct dt_deaths *deaths,
                         struct dt_failed_calls *calls);
void dt_hang_detect_free(struct dt_hang_detect *d);

void dt_hang_detect_note(struct dt_hang_detect *d, const struct dt_hostlink *h,
                         const struct dt_msg_pong *m);
/* Returns whether a PONG describes the running generation and answers a PING that was sent after
 * the generation began. */
bool dt_hang_detect_is_current(const struct dt_hang_detect *d, const struct dt_msg_pong *m);
/* LIMIT says that calls on the host may wait for ms. Returns whether that is less than the limit
 * known so far. */
bool dt_hang_detect_limit(struct dt_hang_detect *d, const struct dt_hostlink *h, uint32_t ms);
/* Adds to a PING the communicators that the agents are to report; the caller frees ping->comms.v.
 */
void dt_hang_detect_ask(const struct dt_hang_detect *d, struct dt_msg_ping *ping);
/* Returns the interval, in ms, at which waits must be checked to notice in time that a limit is
 * over, or 0 if there is no limit. */
uint64_t dt_hang_detect_look_ms(const struct dt_hang_detect *d);
/* Checks all ranks. Do not call it during a pause. */
void dt_hang_detect_watch(struct dt_hang_detect *d);
/* Forgets all waits, because a generation begins or all ranks were stopped. */
void dt_hang_detect_forget(struct dt_hang_detect *d);

#endif
