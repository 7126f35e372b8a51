/* What dtrun exits with. Pure. */
#ifndef DT_JOB_STATE_EXITPOLICY_H
#define DT_JOB_STATE_EXITPOLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/watch/cause.h"
#include "runtime/wire/msg.h"

/* For a rank, as shells do it: its exit code, or 128 + signal. */
int dt_exit_of_rank(int32_t code, int32_t signo);
/* Whether a rank exited with EX_TEMPFAIL of sysexits(3), to make room for others. */
bool dt_exit_is_preemption(const struct dt_death *death);
/* For a job that ended because of this death. Never 0. */
int dt_exit_of_cause(const struct dt_death *cause);
/* For a job whose rank could not be started: 127 not found, 126 not executable, 125 anything else.
 */
int dt_exit_of_spawn(enum dt_spawn_step step, int32_t error);

#endif
