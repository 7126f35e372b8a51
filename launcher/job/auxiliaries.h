/* The auxiliaries of a job once all its ranks have exited with 0. The scheduler and the servers
 * learn from the ranks that the job is over, and end by themselves. dtrun ends any that do not. */
#ifndef DT_JOB_AUXILIARIES_H
#define DT_JOB_AUXILIARIES_H

#include "launcher/job/core/core.h"
#include "launcher/job/state/deaths.h"

struct dt_auxiliaries {
    struct dt_core *core;
    struct dt_deaths *deaths; /* those of auxiliaries that do no harm are not among them */
};

void dt_auxiliaries_on_exit(const struct dt_auxiliaries *a, const struct dt_death *death);
void dt_auxiliaries_watch(const struct dt_auxiliaries *a);   /* a rank has exited with 0 */
void dt_auxiliaries_on_late(const struct dt_auxiliaries *a); /* DT_TIMER_AUXILIARIES */
/* The job's time limit is over. If all ranks had exited with 0 by then, ends the auxiliaries, which
 * is no failure, and returns true. */
bool dt_auxiliaries_end(const struct dt_auxiliaries *a);
/* Whether the loss of a host is no failure, since only auxiliaries ran; then says so. */
bool dt_auxiliaries_pardon_host(const struct dt_auxiliaries *a, const struct dt_hostlink *h);

#endif
