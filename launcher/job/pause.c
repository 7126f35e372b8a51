#include "launcher/job/pause.h"

#include <signal.h>

enum { PATIENCE_MS = 1000 }; /* for an agent that does not answer */

static void signal_agents(struct dt_pause *p, int signo)
{
    const struct dt_msg_signal m = { .signo = signo };

    for (size_t i = 0; i < p->core->config->hosts->n; i++) {
        if (p->core->links.v[i])
            dt_hostlink_send(p->core->links.v[i], DT_MSG_SIGNAL, &m);
    }
}

/* These wait for ranks, which are stopped, or for messages and readers, to which dtrun does not
 * attend while it is stopped itself. */
static void give_time_back(struct dt_timers *timers, uint64_t ns)
{
    static const enum dt_job_timer stopped[] = {
        DT_TIMER_START,    DT_TIMER_STRAGGLERS, DT_TIMER_MISSED, DT_TIMER_GRACE,
        DT_TIMER_PATIENCE, DT_TIMER_READER,     DT_TIMER_CUT,    DT_TIMER_AUXILIARIES,
        DT_TIMER_COLLECT,  DT_TIMER_LAST_CALLS,
    };

    for (size_t i = 0; i < sizeof stopped / sizeof *stopped; i++)
        dt_timers_delay(timers, stopped[i], ns);
}

static void stop_here(struct dt_pause *p)
{
    uint64_t stopped_ns = dt_core_now(p->core);

    p->pausing = false;
    dt_timers_stop(&p->core->timers, DT_TIMER_PAUSE);
    p->core->ops->suspend(p->core->ops->arg);
    /* The user has continued dtrun. */
    give_time_back(&p->core->timers, dt_core_now(p->core) - stopped_ns);
    dt_hang_detect_forget(p->hang_detect);
    signal_agents(p, SIGCONT);
}

void dt_pause_on_late(struct dt_pause *p)
{
    stop_here(p);
}

void dt_pause_begin(struct dt_pause *p)
{
    if (p->pausing)
        return;
    p->pausing = true;
    signal_agents(p, SIGSTOP);
    dt_core_query(p->core);
    dt_timers_set(&p->core->timers, DT_TIMER_PAUSE, PATIENCE_MS);
    dt_pause_answered(p);
}

void dt_pause_answered(struct dt_pause *p)
{
    if (p->pausing && dt_hostlinks_have_answered(&p->core->links))
        stop_here(p);
}
