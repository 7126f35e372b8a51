/* A batch system sends one signal to many processes: to dtrun, and to the agents and ranks of every
 * step. The job acts on it only once, after every step has reported it. By then each agent knows
 * whether its ranks have received the signal, and does not send it to them again. */
#ifndef DT_JOB_STATE_SIGNAL_GATHER_H
#define DT_JOB_STATE_SIGNAL_GATHER_H

#include "launcher/job/state/timers.h"

enum {
    DT_GATHER_MS = 200,        /* minimum time: other agents may report the signal */
    DT_GATHER_BATCH_MS = 1000, /* the same in a batch system: hosts may belong to no step */
    DT_GATHER_STEP_MS = 2000,  /* maximum time: the signal may be meant for dtrun alone */
};

/* Sets of signals: bit n stands for signal n. */
static inline uint64_t dt_signal_bit(int signo)
{
    return signo > 0 && signo < 64 ? UINT64_C(1) << signo : 0;
}

struct dt_signal_gather {
    uint64_t gathered; /* the set so far, while DT_TIMER_GATHER runs */
    uint64_t reported; /* those of them that an agent has reported */
    uint64_t began_ns;
    uint64_t acted_ns[64]; /* when the job last acted on each signal; 0: never */
};

/* reported: by an agent, not received by dtrun itself. Returns false if the job has just acted on
 * this signal. */
bool dt_signal_gather_add(struct dt_signal_gather *g, struct dt_timers *timers, int signo,
                          bool reported);
/* The job acts on this signal without gathering it. Returns its set if an agent has reported it,
 * so that others may do so later. */
uint64_t dt_signal_gather_skip(struct dt_signal_gather *g, struct dt_timers *timers, int signo);
/* Call this while DT_TIMER_GATHER runs, when every step that has ranks has reported the signal.
 * From now on, the job waits only until min_ms have passed. */
void dt_signal_gather_complete(const struct dt_signal_gather *g, struct dt_timers *timers,
                               uint64_t min_ms);
/* DT_TIMER_GATHER has expired. Returns the signals to act on: only one if it ends the job, else
 * all. */
uint64_t dt_signal_gather_over(struct dt_signal_gather *g, const struct dt_timers *timers);

/* Returns whether a signal that ends the job was received and will be acted on soon. */
bool dt_signal_gather_stops_soon(const struct dt_signal_gather *g, const struct dt_timers *timers);

#endif
