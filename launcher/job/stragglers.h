/* Watches ranks that still run although others have exited with 0. They may wait forever for the
 * ranks that exited. If they link libdtrun, exiting early is a failure at once (cause.h). Otherwise
 * dtrun cannot see whether they wait, so it warns the user, or ends the job after --exit-grace. */
#ifndef DT_JOB_STRAGGLERS_H
#define DT_JOB_STRAGGLERS_H

#include "launcher/job/core/core.h"

struct dt_stragglers {
    struct dt_core *core;
    bool warned; /* once in a job */
};

void dt_stragglers_watch(const struct dt_stragglers *s); /* a rank has exited with 0 */
void dt_stragglers_on_late(struct dt_stragglers *s);     /* DT_TIMER_STRAGGLERS */

#endif
