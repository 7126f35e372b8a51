#include "launcher/job/core/job_fsm.h"

/* All other events change nothing. A rank or host that is lost while the job is FAILING is recorded
 * with the others. While it is RECOVERING or STOPPING, dtrun itself ends the ranks. */
static const struct dt_job_step table[DT_JOB_STATES][DT_JOB_EVENTS] = {
    [DT_JOB_CONNECTING] = {
        [DT_EV_IDLE] = { DT_ACT_CHECK_HOSTS, DT_JOB_CONNECTING },
        [DT_EV_STOP] = { DT_ACT_ABANDON, DT_JOB_ENDING },
        [DT_EV_KILL] = { DT_ACT_ABANDON, DT_JOB_ENDING },
        [DT_EV_USABLE] = { DT_ACT_START, DT_JOB_STARTING },
        [DT_EV_UNUSABLE] = { DT_ACT_FINISH, DT_JOB_ENDING },
    },
    [DT_JOB_STARTING] = {
        [DT_EV_IDLE] = { DT_ACT_FINISH, DT_JOB_ENDING },
        [DT_EV_STARTED] = { DT_ACT_RUN, DT_JOB_RUNNING },
        [DT_EV_SPAWN_FAILED] = { DT_ACT_REFUSE, DT_JOB_STOPPING },
        [DT_EV_RANK_FAILED] = { DT_ACT_COLLECT, DT_JOB_FAILING },
        [DT_EV_HOST_LOST] = { DT_ACT_COLLECT, DT_JOB_FAILING },
        [DT_EV_STOP] = { DT_ACT_STOP, DT_JOB_STOPPING },
        [DT_EV_KILL] = { DT_ACT_KILL, DT_JOB_STOPPING },
        [DT_EV_LEFT_OUT] = { DT_ACT_RECOVER, DT_JOB_RECOVERING },
        [DT_EV_RESTART] = { DT_ACT_RECOVER, DT_JOB_RECOVERING },
    },
    [DT_JOB_RUNNING] = {
        [DT_EV_IDLE] = { DT_ACT_FINISH, DT_JOB_ENDING },
        [DT_EV_RANK_FAILED] = { DT_ACT_COLLECT, DT_JOB_FAILING },
        [DT_EV_HOST_LOST] = { DT_ACT_COLLECT, DT_JOB_FAILING },
        [DT_EV_STOP] = { DT_ACT_STOP, DT_JOB_STOPPING },
        [DT_EV_KILL] = { DT_ACT_KILL, DT_JOB_STOPPING },
        [DT_EV_RESTART] = { DT_ACT_RECOVER, DT_JOB_RECOVERING },
    },
    [DT_JOB_FAILING] = {
        [DT_EV_IDLE] = { DT_ACT_DECIDE, DT_JOB_FAILING }, /* all deaths are known */
        [DT_EV_SPAWN_FAILED] = { DT_ACT_REFUSE, DT_JOB_STOPPING }, /* not the first failure */
        [DT_EV_SETTLED] = { DT_ACT_DECIDE, DT_JOB_FAILING },
        [DT_EV_STOP] = { DT_ACT_STOP, DT_JOB_STOPPING },
        [DT_EV_KILL] = { DT_ACT_KILL, DT_JOB_STOPPING },
        [DT_EV_RESTART] = { DT_ACT_RECOVER, DT_JOB_RECOVERING },
        [DT_EV_FAILED] = { DT_ACT_FAIL, DT_JOB_STOPPING },
        [DT_EV_HARMLESS] = { DT_ACT_CONTINUE, DT_JOB_RUNNING },
        [DT_EV_HARMLESS_EARLY] = { DT_ACT_CONTINUE, DT_JOB_STARTING },
    },
    [DT_JOB_RECOVERING] = {
        [DT_EV_IDLE] = { DT_ACT_RELAUNCH, DT_JOB_RECOVERING },
        [DT_EV_HOST_LOST] = { DT_ACT_RECONNECT, DT_JOB_RECOVERING },
        [DT_EV_STOP] = { DT_ACT_STOP, DT_JOB_STOPPING },
        [DT_EV_KILL] = { DT_ACT_KILL, DT_JOB_STOPPING },
        [DT_EV_USABLE] = { DT_ACT_START, DT_JOB_STARTING },
        [DT_EV_FAILED] = { DT_ACT_FAIL, DT_JOB_STOPPING },
    },
    [DT_JOB_STOPPING] = {
        [DT_EV_IDLE] = { DT_ACT_FINISH, DT_JOB_ENDING },
        [DT_EV_KILL] = { DT_ACT_KILL, DT_JOB_STOPPING },
    },
    [DT_JOB_ENDING] = {
        [DT_EV_STOP] = { DT_ACT_CUT, DT_JOB_ENDING },
        [DT_EV_KILL] = { DT_ACT_CUT, DT_JOB_ENDING },
        [DT_EV_CLOSED] = { DT_ACT_LEAVE, DT_JOB_OVER },
    },
};

struct dt_job_step dt_job_fsm(enum dt_job_state state, enum dt_job_event event)
{
    struct dt_job_step step = table[state][event];

    return step.action == DT_ACT_NONE ? (struct dt_job_step){ DT_ACT_NONE, state } : step;
}
