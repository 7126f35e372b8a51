#include "launcher/job/state/signal_gather.h"

#include "launcher/watch/signals.h"

enum { ECHO_MS = 1000 }; /* what comes so soon again is the same */

static bool is_echo(const struct dt_signal_gather *g, const struct dt_timers *timers, int signo)
{
    return g->acted_signo == signo && dt_timers_now_ns(timers) - g->acted_ns < ECHO_MS * 1000000ull;
}

void dt_signal_gather_add(struct dt_signal_gather *g, struct dt_timers *timers, int signo)
{
    if (is_echo(g, timers, signo))
        return;
    if (!dt_timers_runs(timers, DT_TIMER_GATHER)) {
        g->gathered = signo;
        g->began_ns = dt_timers_now_ns(timers);
        dt_timers_set(timers, DT_TIMER_GATHER, DT_GATHER_STEP_MS);
    } else if (dt_signal_meaning(signo, 0) == DT_SIGNAL_STOP) {
        g->gathered = signo; /* ends what another would only have told */
    }
}

void dt_signal_gather_complete(const struct dt_signal_gather *g, struct dt_timers *timers)
{
    uint64_t since_ms = (dt_timers_now_ns(timers) - g->began_ns) / 1000000;

    if (dt_timers_runs(timers, DT_TIMER_GATHER))
        dt_timers_hasten(timers, DT_TIMER_GATHER,
                         since_ms < DT_GATHER_MS ? DT_GATHER_MS - since_ms : 0);
}

int dt_signal_gather_over(struct dt_signal_gather *g, const struct dt_timers *timers)
{
    g->acted_ns = dt_timers_now_ns(timers);
    g->acted_signo = g->gathered;
    return g->gathered;
}

bool dt_signal_gather_stops_soon(const struct dt_signal_gather *g, const struct dt_timers *timers)
{
    return dt_timers_runs(timers, DT_TIMER_GATHER) &&
           dt_signal_meaning(g->gathered, 0) == DT_SIGNAL_STOP;
}
