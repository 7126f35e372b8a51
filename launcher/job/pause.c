/* Ctrl-Z. The terminal's SIGTSTP does not reach the ranks: they are in other sessions, some on
 * other hosts. So the agents are told to SIGSTOP them and to hold their leases, since dtrun will be
 * silent. When all have said that this is done, dtrun stops itself.
 *
 * Agents without ranks are told, too: they also hold a lease, and one whose ranks end between the
 * two signals would keep it suspended for ever. */
#include <signal.h>

#include "launcher/job/engine.h"

enum { PATIENCE_MS = 1000 }; /* for an agent that does not answer */

static void signal_agents(struct dt_job *j, int signo)
{
    const struct dt_msg_signal m = { .signo = signo };

    for (size_t i = 0; i < j->core.config->hosts->n; i++) {
        if (j->core.links.v[i])
            dt_hostlink_send(j->core.links.v[i], DT_MSG_SIGNAL, &m);
    }
}

static void stop_here(struct dt_job *j)
{
    j->pausing = false;
    dt_timers_stop(&j->core.timers, DT_TIMER_PAUSE);
    j->core.ops->suspend(j->core.ops->arg);
    /* Here dtrun goes on, when the user wants it to. */
    dt_job_forget_waits(j);
    signal_agents(j, SIGCONT);
}

void dt_job_on_pause_late(struct dt_job *j)
{
    stop_here(j);
}

void dt_job_pause(struct dt_job *j)
{
    if (j->pausing)
        return;
    j->pausing = true;
    signal_agents(j, SIGSTOP);
    dt_core_ask(&j->core);
    dt_timers_set(&j->core.timers, DT_TIMER_PAUSE, PATIENCE_MS);
    dt_job_pause_answered(j);
}

void dt_job_pause_answered(struct dt_job *j)
{
    if (j->pausing && dt_hostlinks_have_answered(&j->core.links))
        stop_here(j);
}
