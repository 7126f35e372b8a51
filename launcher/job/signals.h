/* What the job does about signals sent to dtrun and, in a batch system, to its agents. */
#ifndef DT_JOB_SIGNALS_H
#define DT_JOB_SIGNALS_H

#include "launcher/job/core/core.h"
#include "launcher/job/pause.h"
#include "launcher/job/state/signal_gather.h"

struct dt_signals {
    struct dt_core *core;
    struct dt_pause *pause; /* for Ctrl-Z */
    bool batch;             /* a batch system may signal dtrun and agents alike */
    struct dt_signal_gather gather;
    int stopped_by;       /* the signal that began to stop the job, or 0 */
    const char *reporter; /* no batch: the host whose agent, not dtrun, got the signal; or NULL */
};

void dt_signals_on_signal(struct dt_signals *s, int signo); /* dtrun received it */
/* Whether the signal concerns this host alone: it ends processes, and is no batch system's. */
bool dt_signals_is_for_host(const struct dt_signals *s, const struct dt_hostlink *h, int signo);
/* Whether a signal that stops the job is being gathered. */
bool dt_signals_stop_soon(const struct dt_signals *s);
void dt_signals_on_signalled(struct dt_signals *s, struct dt_hostlink *h,
                             const struct dt_msg_signalled *m);
void dt_signals_on_gathered(struct dt_signals *s); /* DT_TIMER_GATHER */
/* A host has no ranks any more: stops waiting for its step to report signals. */
void dt_signals_check_steps(struct dt_signals *s);
/* A rank has died of signo; the failure was noticed at failed_ns. Returns true if a batch system
 * may have sent the signal to the whole job. dtrun then waits to receive it too, in which case the
 * death is no failure. If the signal does not arrive, DT_TIMER_COLLECT expires. */
bool dt_signals_may_explain(const struct dt_signals *s, int signo, uint64_t failed_ns);

#endif
