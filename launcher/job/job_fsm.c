#include "launcher/job/job_fsm.h"

/* clang-format off */
static const unsigned char table[DT_JOB_STATES][DT_JOB_EVENTS] = {
    [DT_JOB_CONNECTING] = {
        [DT_EV_IDLE]         = DT_ACT_LAUNCH,
        [DT_EV_STARTED]      = DT_ACT_NONE,
        [DT_EV_SPAWN_FAILED] = DT_ACT_NONE,
        [DT_EV_RANK_FAILED]  = DT_ACT_NONE,
        [DT_EV_HOST_LOST]    = DT_ACT_NONE, /* counted as unusable when all have answered */
        [DT_EV_SETTLED]      = DT_ACT_NONE,
        [DT_EV_STOP]         = DT_ACT_ABANDON,
        [DT_EV_KILL]         = DT_ACT_ABANDON,
        [DT_EV_CLOSED]       = DT_ACT_NONE,
    },
    [DT_JOB_STARTING] = {
        [DT_EV_IDLE]         = DT_ACT_FINISH,
        [DT_EV_STARTED]      = DT_ACT_RUN,
        [DT_EV_SPAWN_FAILED] = DT_ACT_REFUSE,
        [DT_EV_RANK_FAILED]  = DT_ACT_COLLECT,
        [DT_EV_HOST_LOST]    = DT_ACT_COLLECT,
        [DT_EV_SETTLED]      = DT_ACT_NONE,
        [DT_EV_STOP]         = DT_ACT_STOP,
        [DT_EV_KILL]         = DT_ACT_KILL,
        [DT_EV_CLOSED]       = DT_ACT_NONE,
    },
    [DT_JOB_RUNNING] = {
        [DT_EV_IDLE]         = DT_ACT_FINISH,
        [DT_EV_STARTED]      = DT_ACT_NONE,
        [DT_EV_SPAWN_FAILED] = DT_ACT_NONE,
        [DT_EV_RANK_FAILED]  = DT_ACT_COLLECT,
        [DT_EV_HOST_LOST]    = DT_ACT_COLLECT,
        [DT_EV_SETTLED]      = DT_ACT_NONE,
        [DT_EV_STOP]         = DT_ACT_STOP,
        [DT_EV_KILL]         = DT_ACT_KILL,
        [DT_EV_CLOSED]       = DT_ACT_NONE,
    },
    [DT_JOB_FAILING] = {
        [DT_EV_IDLE]         = DT_ACT_DECIDE, /* every death there will be is known */
        [DT_EV_STARTED]      = DT_ACT_NONE,
        [DT_EV_SPAWN_FAILED] = DT_ACT_REFUSE, /* nothing that dies now was the first */
        [DT_EV_RANK_FAILED]  = DT_ACT_NONE,   /* it is recorded */
        [DT_EV_HOST_LOST]    = DT_ACT_NONE,   /* likewise */
        [DT_EV_SETTLED]      = DT_ACT_DECIDE,
        [DT_EV_STOP]         = DT_ACT_STOP,
        [DT_EV_KILL]         = DT_ACT_KILL,
        [DT_EV_CLOSED]       = DT_ACT_NONE,
    },
    [DT_JOB_RECOVERING] = {
        [DT_EV_IDLE]         = DT_ACT_RELAUNCH,
        [DT_EV_STARTED]      = DT_ACT_NONE,
        [DT_EV_SPAWN_FAILED] = DT_ACT_NONE,
        [DT_EV_RANK_FAILED]  = DT_ACT_NONE, /* we killed it */
        [DT_EV_HOST_LOST]    = DT_ACT_RECONNECT,
        [DT_EV_SETTLED]      = DT_ACT_NONE,
        [DT_EV_STOP]         = DT_ACT_STOP,
        [DT_EV_KILL]         = DT_ACT_KILL,
        [DT_EV_CLOSED]       = DT_ACT_NONE,
    },
    [DT_JOB_STOPPING] = {
        [DT_EV_IDLE]         = DT_ACT_FINISH,
        [DT_EV_STARTED]      = DT_ACT_NONE,
        [DT_EV_SPAWN_FAILED] = DT_ACT_NONE,
        [DT_EV_RANK_FAILED]  = DT_ACT_NONE,
        [DT_EV_HOST_LOST]    = DT_ACT_NONE, /* its agent ends the ranks by itself */
        [DT_EV_SETTLED]      = DT_ACT_NONE,
        [DT_EV_STOP]         = DT_ACT_NONE,
        [DT_EV_KILL]         = DT_ACT_KILL,
        [DT_EV_CLOSED]       = DT_ACT_NONE,
    },
    [DT_JOB_ENDING] = {
        [DT_EV_IDLE]         = DT_ACT_NONE,
        [DT_EV_STARTED]      = DT_ACT_NONE,
        [DT_EV_SPAWN_FAILED] = DT_ACT_NONE,
        [DT_EV_RANK_FAILED]  = DT_ACT_NONE,
        [DT_EV_HOST_LOST]    = DT_ACT_NONE,
        [DT_EV_SETTLED]      = DT_ACT_NONE,
        [DT_EV_STOP]         = DT_ACT_CUT,
        [DT_EV_KILL]         = DT_ACT_CUT,
        [DT_EV_CLOSED]       = DT_ACT_LEAVE,
    },
};
/* clang-format on */

enum dt_job_action dt_job_fsm(enum dt_job_state state, enum dt_job_event event)
{
    return table[state][event];
}
