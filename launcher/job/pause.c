/* Ctrl-Z. The terminal's SIGTSTP does not reach the ranks: they are in other sessions, some on
 * other hosts. So the agents are told to SIGSTOP them and to hold their leases, since dtrun will be
 * silent. When all have said that this is done, dtrun stops itself. */
#include <signal.h>

#include "launcher/job/engine.h"

enum { PATIENCE_MS = 1000 }; /* for an agent that does not answer */

static void stop_here(struct dt_job *j)
{
    struct dt_msg_signal cont = { .signo = SIGCONT };

    j->pausing = false;
    dt_timers_stop(&j->timers, DT_TIMER_PAUSE);
    j->ops->suspend(j->ops->arg);
    /* Here dtrun goes on, when the user wants it to. */
    dt_job_forget_waits(j);
    dt_job_send_all(j, DT_MSG_SIGNAL, &cont);
}

void dt_job_on_pause_late(struct dt_job *j)
{
    stop_here(j);
}

void dt_job_pause(struct dt_job *j)
{
    struct dt_msg_signal stop = { .signo = SIGSTOP };

    if (j->pausing)
        return;
    j->pausing = true;
    dt_job_send_all(j, DT_MSG_SIGNAL, &stop);
    dt_job_ask(j);
    dt_timers_set(&j->timers, DT_TIMER_PAUSE, PATIENCE_MS);
    dt_job_pause_answered(j);
}

void dt_job_pause_answered(struct dt_job *j)
{
    if (j->pausing && dt_job_all_answered(j))
        stop_here(j);
}
