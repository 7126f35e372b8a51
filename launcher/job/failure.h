/* Handles deaths of ranks and losses of hosts: finds out which one caused the others, tells the
 * user, and decides whether the job recovers or ends. */
#ifndef DT_JOB_FAILURE_H
#define DT_JOB_FAILURE_H

#include "launcher/job/core/core.h"
#include "launcher/job/hang_detect.h"
#include "launcher/job/signals.h"
#include "launcher/job/state/deaths.h"
#include "launcher/job/state/failed_calls.h"
#include "launcher/job/state/restart.h"

struct dt_failure {
    struct dt_core *core;
    const struct dt_hang_detect *hang_detect; /* says why a rank that hangs counts as lost */
    const struct dt_signals *signals;         /* a signal to the whole job may explain a death */
    const struct dt_restart *restart;
    struct dt_deaths deaths; /* in this generation; a rank that hangs counts as dead */
    struct dt_failed_calls calls;
    uint64_t explain_until_ns; /* until then dtrun awaits the reason why ranks lost a peer; or 0 */
    uint64_t noticed_ns; /* when dtrun noticed the failure; set before the job becomes FAILING */
    struct dt_death last_cause; /* of the last failure that dt_failure_decide handled */
    unsigned repeats;           /* the number of failures in a row with this cause */
};

/* What the other arguments point to must outlive f. */
void dt_failure_init(struct dt_failure *f, struct dt_core *core,
                     const struct dt_hang_detect *hang_detect, const struct dt_signals *signals,
                     const struct dt_restart *restart);
void dt_failure_free(struct dt_failure *f);
void dt_failure_forget(struct dt_failure *f); /* a generation begins */

/* Returns how the process ended, or NULL if the process is not of this generation or its end was
 * already known. Adds the death to deaths if it is a rank's; whether an auxiliary's death is a
 * failure is decided elsewhere (auxiliaries.h). */
const struct dt_death *dt_failure_on_exit(struct dt_failure *f, const struct dt_hostlink *h,
                                          const struct dt_msg_exit *m);
/* The connection to a host has ended, so its processes count as ended. */
void dt_failure_lose_processes(struct dt_failure *f, const struct dt_plan_node *node);
/* Records that the host is lost, with all its ranks. */
void dt_failure_lose_host(struct dt_failure *f, const struct dt_hostlink *h,
                          const struct dt_plan_node *node);
void dt_failure_on_failed(struct dt_failure *f, const struct dt_msg_failed *m);

const struct dt_death *dt_failure_cause(const struct dt_failure *f); /* NULL: nothing has failed */
void dt_failure_collect(struct dt_failure *f);                       /* DT_ACT_COLLECT */
/* Call this when something has arrived that dtrun waits for while FAILING. Raises SETTLED if
 * nothing else is missing. */
void dt_failure_settle(struct dt_failure *f);
/* DT_ACT_DECIDE. Returns true if the job recovers. *cause is then set, and text describes it. If it
 * returns false, it has told the user and raised the event that follows. The exception is a death
 * that a signal to the whole job, or the death of another rank, may explain: then it has done
 * neither, and is called again if that does not arrive in time (DT_TIMER_COLLECT). */
bool dt_failure_decide(struct dt_failure *f, struct dt_death *cause, struct dt_strbuf *text);

#endif
