/* Ctrl-Z. The terminal's SIGTSTP does not reach the ranks: they are in other sessions, some on
 * other hosts. So the agents are told to SIGSTOP them and to hold their leases, since dtrun will be
 * silent. When all have said that this is done, dtrun stops itself. */
#include <signal.h>

#include "launcher/job/engine.h"

enum { PATIENCE_MS = 1000 }; /* for an agent that does not answer */

/* As SIGTSTP does where nobody catches it. In an orphaned process group (of "ssh -t host dtrun", or
 * of a container's first process) the kernel does not stop us then: no shell could continue us. */
static void stop_unless_orphaned(void)
{
    const struct sigaction by_default = { .sa_handler = SIG_DFL };
    struct sigaction ours;

    sigaction(SIGTSTP, &by_default, &ours);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
}

static void stop_here(struct dt_job *j)
{
    struct dt_msg_signal cont = { .signo = SIGCONT };

    j->pausing = false;
    uv_timer_stop(&j->pause);
    stop_unless_orphaned();
    /* Here dtrun goes on, when the user wants it to. */
    dt_job_forget_waits(j);
    dt_job_send_all(j, DT_MSG_SIGNAL, &cont);
}

static void on_patience_over(uv_timer_t *timer)
{
    stop_here(timer->data);
}

void dt_job_pause(struct dt_job *j)
{
    struct dt_msg_signal stop = { .signo = SIGSTOP };

    if (j->pausing)
        return;
    j->pausing = true;
    dt_job_send_all(j, DT_MSG_SIGNAL, &stop);
    dt_job_ask(j);
    uv_timer_start(&j->pause, on_patience_over, PATIENCE_MS, 0);
    dt_job_pause_answered(j);
}

void dt_job_pause_answered(struct dt_job *j)
{
    if (j->pausing && dt_job_all_answered(j))
        stop_here(j);
}
