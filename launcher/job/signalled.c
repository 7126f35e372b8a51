/* Signals for the job that came to an agent, or to dtrun in a batch job: a batch system sends one
 * to many processes at nearly the same time. It is acted upon once, and only when every agent whose
 * ranks have had it themselves knows that. */
#include <signal.h>

#include "launcher/base/log.h"
#include "launcher/job/engine.h"
#include "launcher/job/signals.h"

enum { ECHO_MS = 1000 }; /* what comes so soon again is the same */

void dt_job_on_gathered(struct dt_job *j)
{
    j->acted_ns = dt_job_now(j);
    j->acted_signo = j->gathered;
    dt_job_take_signal(j, j->gathered);
}

static bool is_echo(const struct dt_job *j, int signo)
{
    return j->acted_signo == signo && dt_job_now(j) - j->acted_ns < ECHO_MS * 1000000ull;
}

void dt_job_gather_signal(struct dt_job *j, int signo)
{
    if (is_echo(j, signo))
        return;
    if (!dt_timers_runs(&j->timers, DT_TIMER_GATHER)) {
        j->gathered = signo;
        dt_timers_set(&j->timers, DT_TIMER_GATHER, DT_GATHER_MS);
    } else if (dt_signal_meaning(signo, 0) == DT_SIGNAL_STOP) {
        j->gathered = signo; /* ends what another would only have told */
    }
}

bool dt_job_stops_soon(const struct dt_job *j)
{
    return dt_timers_runs(&j->timers, DT_TIMER_GATHER) &&
           dt_signal_meaning(j->gathered, 0) == DT_SIGNAL_STOP;
}

/* Of a host's word only those count that are meant for jobs. */
void dt_job_on_signalled(struct dt_job *j, const struct dt_hostlink *h,
                         const struct dt_msg_signalled *m)
{
    enum dt_signal_meaning meaning = dt_signal_meaning(m->signo, 0);

    if (meaning != DT_SIGNAL_STOP && meaning != DT_SIGNAL_FORWARD)
        return;
    dt_verbose("%s: the agent was sent %s", dt_job_host_name(j, h->host), dt_signal_name(m->signo));
    dt_job_gather_signal(j, m->signo);
}
