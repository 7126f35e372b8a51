/* A batch system sends one signal to many processes: to dtrun, and to the agents and ranks of every
 * step. The job acts on it once. It waits until every step has reported the signal, because an
 * agent that knows that its ranks have had it does not send it to them again. */
#ifndef DT_JOB_STATE_SIGNAL_GATHER_H
#define DT_JOB_STATE_SIGNAL_GATHER_H

#include "launcher/job/state/timers.h"

enum {
    DT_GATHER_MS = 200,       /* for hosts that belong to no step */
    DT_GATHER_STEP_MS = 2000, /* for steps; the signal may be meant for dtrun alone */
};

/* Signals as a set: bit n is signal n. */
static inline uint64_t dt_signal_bit(int signo)
{
    return signo > 0 && signo < 64 ? UINT64_C(1) << signo : 0;
}

struct dt_signal_gather {
    uint64_t gathered; /* while DT_TIMER_GATHER runs */
    uint64_t began_ns;
    uint64_t acted; /* the signals that the job acted on last */
    uint64_t acted_ns;
};

/* Returns false if the job has just acted on this signal. */
bool dt_signal_gather_add(struct dt_signal_gather *g, struct dt_timers *timers, int signo);
/* The job acts on this signal without gathering it. */
void dt_signal_gather_skip(struct dt_signal_gather *g, struct dt_timers *timers, int signo);
/* While DT_TIMER_GATHER runs: every step that has ranks has reported the signal. */
void dt_signal_gather_complete(const struct dt_signal_gather *g, struct dt_timers *timers);
/* DT_TIMER_GATHER is over. Returns the signals to act on: one that ends the job, or all others. */
uint64_t dt_signal_gather_over(struct dt_signal_gather *g, const struct dt_timers *timers);

/* A signal that ends the job has come and will be acted upon soon. */
bool dt_signal_gather_stops_soon(const struct dt_signal_gather *g, const struct dt_timers *timers);

#endif
