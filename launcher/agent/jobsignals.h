/* Signals that a batch system, or a person, sends to the agent and means for the job: they are told
 * to the launcher, which decides once for all hosts. */
#ifndef DT_AGENT_JOBSIGNALS_H
#define DT_AGENT_JOBSIGNALS_H

#include <stdbool.h>
#include <uv.h>

#include "launcher/base/error.h"

struct dt_jobsignals;

/* For a process without a loop; handler may be SIG_IGN. */
void dt_jobsignals_handle(void (*handler)(int signo));

/* told: called for each that comes. */
struct dt_jobsignals *dt_jobsignals_open(uv_loop_t *loop, void (*told)(void *arg, int signo),
                                         void *arg, struct dt_error *err);

/* Whether the ranks of this host have had that signal themselves a moment ago: Slurm sends it to
 * every process of a step. They are not to get it twice. */
bool dt_jobsignals_ranks_had(const struct dt_jobsignals *s, int signo);

#endif
