#include "launcher/job/state/exitpolicy.h"

#include <errno.h>

#include "launcher/base/error.h"

int dt_exit_of_rank(int32_t code, int32_t signo)
{
    return signo ? DT_EXIT_SIGNAL + signo : code;
}

bool dt_exit_is_preemption(const struct dt_death *death)
{
    return !death->host && !death->hung && !death->auxiliary && death->signo == 0 &&
           death->code == DT_EXIT_PREEMPTED;
}

int dt_exit_of_cause(const struct dt_death *cause)
{
    if (cause->host)
        return DT_EXIT_LAUNCH;
    if (cause->hung)
        return DT_EXIT_TIMEOUT;
    if (cause->code == 0 && cause->signo == 0)
        return 1; /* it left while others waited for it, or ignored that a peer had died */
    return dt_exit_of_rank(cause->code, cause->signo);
}

int dt_exit_of_spawn(enum dt_spawn_step step, int32_t error)
{
    if (step != DT_SPAWN_EXEC)
        return DT_EXIT_LAUNCH;
    return error == ENOENT || error == ENOTDIR ? DT_EXIT_NOT_FOUND : DT_EXIT_NOT_EXECUTABLE;
}
