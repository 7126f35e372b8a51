/* Signals that a batch system or a person sends to the agent, and that concern the whole job. The
 * agent reports them to the launcher, which decides once for all hosts. */
#ifndef DT_AGENT_JOBSIGNALS_H
#define DT_AGENT_JOBSIGNALS_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "launcher/base/error.h"

struct dt_jobsignals;

/* Sets the handler of these signals, for a process without a loop. handler may be SIG_IGN. */
void dt_jobsignals_handle(void (*handler)(int signo));

/* From now on, passes these signals on to process, a child of the caller. 0 stops that. */
void dt_jobsignals_pass_on(pid_t process);

/* Calls on_signal for each signal. */
struct dt_jobsignals *dt_jobsignals_open(uv_loop_t *loop, void (*on_signal)(void *arg, int signo),
                                         void *arg, struct dt_error *err);

/* Returns whether a batch system, which may signal every process of a job, has just sent this
 * signal to the ranks of this host as well. They must not receive it twice. First calls on_signal
 * for signals that have arrived meanwhile. */
bool dt_jobsignals_ranks_had(struct dt_jobsignals *s, int signo);
/* Forgets that the ranks received this signal (0: any signal), because it has been handled or the
 * ranks are new. */
void dt_jobsignals_forget(struct dt_jobsignals *s, int signo);

#endif
