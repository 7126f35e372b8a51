/* Watches ranks that still run although others have exited with 0. They may wait forever for the
 * ranks that exited. If they link libdtrun, exiting early is a failure at once (cause.h). Ranks of
 * MPI wait for all others in MPI_Init and in MPI_Finalize: one that exited without these calls has
 * failed if they still wait after a few seconds. Otherwise dtrun cannot see whether ranks wait, so
 * it warns the user, or ends the job after --exit-grace. */
#ifndef DT_JOB_STRAGGLERS_H
#define DT_JOB_STRAGGLERS_H

#include "launcher/job/core/core.h"
#include "launcher/job/state/deaths.h"

struct dt_stragglers {
    struct dt_core *core;
    struct dt_deaths *deaths;
    bool warned; /* once in a job */
};

void dt_stragglers_watch(const struct dt_stragglers *s); /* a rank has exited with 0 */
void dt_stragglers_on_mpi_state(const struct dt_stragglers *s, const struct dt_msg_mpi_state *m);
void dt_stragglers_on_late(struct dt_stragglers *s);         /* DT_TIMER_STRAGGLERS */
void dt_stragglers_on_missed(const struct dt_stragglers *s); /* DT_TIMER_MISSED */

#endif
