/* Handles the auxiliaries of a job once all ranks have exited with 0. The ranks have then told the
 * scheduler and the servers that the job is over, so these end by themselves. dtrun ends any that
 * do not. */
#ifndef DT_JOB_AUXILIARIES_H
#define DT_JOB_AUXILIARIES_H

#include "launcher/job/core/core.h"
#include "launcher/job/state/deaths.h"

struct dt_auxiliaries {
    struct dt_core *core;
    struct dt_deaths *deaths; /* does not contain harmless deaths of auxiliaries */
};

void dt_auxiliaries_on_exit(const struct dt_auxiliaries *a, const struct dt_death *death);
void dt_auxiliaries_watch(const struct dt_auxiliaries *a);   /* a rank has exited with 0 */
void dt_auxiliaries_on_late(const struct dt_auxiliaries *a); /* DT_TIMER_AUXILIARIES */
/* Call this when the job's time limit is over. If all ranks have exited with 0, ends the
 * auxiliaries and returns true: that is no failure. */
bool dt_auxiliaries_end(const struct dt_auxiliaries *a);
/* Returns true, and tells the user, if the loss of the host is no failure because only auxiliaries
 * are left. */
bool dt_auxiliaries_pardon_host(const struct dt_auxiliaries *a, const struct dt_hostlink *h);

#endif
