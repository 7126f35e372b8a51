/* What dtrun exits with. Pure. */
#ifndef DT_JOB_STATE_EXITPOLICY_H
#define DT_JOB_STATE_EXITPOLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/watch/cause.h"
#include "runtime/wire/msg.h"

/* Of a rank, in the way of shells: its exit code, or 128 + signal. */
int dt_exit_of_rank(int32_t code, int32_t signo);
/* Whether a rank ended to make room for others, as sysexits(3) names it: EX_TEMPFAIL. */
bool dt_exit_is_preemption(const struct dt_death *death);
/* Of a job that ended with this death. Never 0. */
int dt_exit_of_cause(const struct dt_death *cause);
/* Of a job whose rank could not be started: 127 not found, 126 not executable, 125 anything else.
 */
int dt_exit_of_spawn(enum dt_spawn_step step, int32_t error);

#endif
