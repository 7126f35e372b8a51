#include "launcher/job/state/signal_gather.h"

#include "launcher/watch/signal_meaning.h"

enum { ECHO_MS = 1000 }; /* the same signal within this time is a duplicate */

static bool is_echo(const struct dt_signal_gather *g, const struct dt_timers *timers, int signo)
{
    uint64_t acted_ns = dt_signal_bit(signo) ? g->acted_ns[signo] : 0;

    return acted_ns && dt_timers_now_ns(timers) - acted_ns < ECHO_MS * 1000000ull;
}

/* Returns the set of the first signal that ends the job, or 0 if there is none. */
static uint64_t stops(uint64_t signals)
{
    for (int signo = 1; signo < 64; signo++) {
        if ((signals & dt_signal_bit(signo)) && dt_signal_meaning(signo, 0) == DT_SIGNAL_STOP)
            return dt_signal_bit(signo);
    }
    return 0;
}

static void note_action(struct dt_signal_gather *g, const struct dt_timers *timers,
                        uint64_t signals)
{
    for (int signo = 1; signo < 64; signo++) {
        if (signals & dt_signal_bit(signo))
            g->acted_ns[signo] = dt_timers_now_ns(timers);
    }
}

bool dt_signal_gather_add(struct dt_signal_gather *g, struct dt_timers *timers, int signo,
                          bool reported)
{
    if (is_echo(g, timers, signo))
        return false;
    if (!dt_timers_is_running(timers, DT_TIMER_GATHER)) {
        g->gathered = g->reported = 0;
        g->began_ns = dt_timers_now_ns(timers);
        dt_timers_set(timers, DT_TIMER_GATHER, DT_GATHER_STEP_MS);
    }
    g->gathered |= dt_signal_bit(signo);
    if (reported)
        g->reported |= dt_signal_bit(signo);
    return true;
}

uint64_t dt_signal_gather_skip(struct dt_signal_gather *g, struct dt_timers *timers, int signo)
{
    bool gathering = dt_timers_is_running(timers, DT_TIMER_GATHER);
    uint64_t reported = gathering ? g->reported & dt_signal_bit(signo) : 0;

    note_action(g, timers, dt_signal_bit(signo));
    g->gathered &= ~dt_signal_bit(signo);
    g->reported &= g->gathered;
    if (!g->gathered)
        dt_timers_stop(timers, DT_TIMER_GATHER);
    return reported;
}

void dt_signal_gather_complete(const struct dt_signal_gather *g, struct dt_timers *timers,
                               uint64_t min_ms)
{
    uint64_t since_ms = (dt_timers_now_ns(timers) - g->began_ns) / 1000000;

    dt_timers_shorten(timers, DT_TIMER_GATHER, since_ms < min_ms ? min_ms - since_ms : 0);
}

uint64_t dt_signal_gather_over(struct dt_signal_gather *g, const struct dt_timers *timers)
{
    uint64_t stop = stops(g->gathered);

    note_action(g, timers, g->gathered);
    return stop ? stop : g->gathered;
}

bool dt_signal_gather_stops_soon(const struct dt_signal_gather *g, const struct dt_timers *timers)
{
    return dt_timers_is_running(timers, DT_TIMER_GATHER) && stops(g->gathered);
}
