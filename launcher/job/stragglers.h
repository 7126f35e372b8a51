/* Watches ranks that still run although others have exited with 0. They may wait forever for the
 * ranks that exited. If they link libdtrun, exiting early is a failure at once (cause.h). A rank of
 * MPI that exited without MPI_Finalize has failed if others still run after a few seconds: MPI
 * would let them wait for it in MPI_Finalize. Otherwise dtrun cannot see whether they wait, so it
 * warns the user, or ends the job after --exit-grace. */
#ifndef DT_JOB_STRAGGLERS_H
#define DT_JOB_STRAGGLERS_H

#include "launcher/job/core/core.h"
#include "launcher/job/state/deaths.h"

struct dt_stragglers {
    struct dt_core *core;
    struct dt_deaths *deaths;
    bool warned; /* once in a job */
};

/* A rank has exited with 0. */
void dt_stragglers_watch(const struct dt_stragglers *s, const struct dt_death *end);
void dt_stragglers_on_late(struct dt_stragglers *s); /* DT_TIMER_STRAGGLERS */

#endif
