/* A signal that a batch system sends to many processes at nearly the same time, dtrun and agents:
 * it is acted upon once, and only when every agent whose ranks have had it themselves knows that.
 */
#ifndef DT_JOB_STATE_SIGNAL_GATHER_H
#define DT_JOB_STATE_SIGNAL_GATHER_H

#include "launcher/job/state/timers.h"

enum { DT_GATHER_MS = 200 }; /* within which a batch system reaches all hosts */

struct dt_signal_gather {
    int gathered; /* while DT_TIMER_GATHER runs */
    int acted_signo;
    uint64_t acted_ns; /* when the last one was acted upon */
};

void dt_signal_gather_add(struct dt_signal_gather *g, struct dt_timers *timers, int signo);
/* DT_TIMER_GATHER is over. Returns the signal that is to be acted upon. */
int dt_signal_gather_over(struct dt_signal_gather *g, const struct dt_timers *timers);

/* A signal that ends the job has come, and is acted upon when all hosts have it. */
bool dt_signal_gather_stops_soon(const struct dt_signal_gather *g, const struct dt_timers *timers);

#endif
