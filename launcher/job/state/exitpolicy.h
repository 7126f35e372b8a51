/* The exit code of dtrun. Pure. */
#ifndef DT_JOB_STATE_EXITPOLICY_H
#define DT_JOB_STATE_EXITPOLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/watch/cause.h"
#include "runtime/wire/msg.h"

/* Returns what a shell reports for a rank: its exit code, or 128 + signal. */
int dt_exit_of_rank(int32_t code, int32_t signo);
/* Returns whether a rank exited with EX_TEMPFAIL of sysexits(3): it was preempted. */
bool dt_exit_is_preemption(const struct dt_death *death);
/* Returns the exit code for a job that ended because of this death; never 0. */
int dt_exit_of_cause(const struct dt_death *cause);
/* Returns the exit code for a job that could not start a rank: 127 if the program was not found,
 * 126 if it is not executable, else 125. */
int dt_exit_of_spawn(enum dt_spawn_step step, int32_t error);

#endif
