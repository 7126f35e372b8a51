/* Collects the last calls that ranks report after a call has failed. Prints them once all ranks
 * have had time to report. */
#ifndef DT_JOB_LAST_CALLS_H
#define DT_JOB_LAST_CALLS_H

#include "launcher/job/core/core.h"
#include "launcher/watch/flight_record.h"

struct dt_last_calls {
    struct dt_core *core;
    struct dt_flight_record record; /* what has not been printed yet */
};

void dt_last_calls_on_report(struct dt_last_calls *l, const struct dt_hostlink *h,
                             const struct dt_msg_last_calls *m);
void dt_last_calls_say(struct dt_last_calls *l);
void dt_last_calls_on_due(struct dt_last_calls *l); /* DT_TIMER_LAST_CALLS */
void dt_last_calls_forget(struct dt_last_calls *l); /* all ranks begin again */

#endif
