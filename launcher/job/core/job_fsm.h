/* The life of a job as a table: what dtrun does when something happens, depending on where the job
 * stands, and where it stands then. Pure; job.c says which functions the actions are. */
#ifndef DT_JOB_CORE_JOB_FSM_H
#define DT_JOB_CORE_JOB_FSM_H

enum dt_job_state {
    DT_JOB_CONNECTING, /* links to all hosts are being opened */
    DT_JOB_STARTING,   /* START is sent; not all hosts have said STARTED */
    DT_JOB_RUNNING,
    DT_JOB_FAILING,    /* a rank or host died; collecting what the agents know of deaths */
    DT_JOB_RECOVERING, /* all ranks are being killed, to be started again */
    DT_JOB_STOPPING,   /* all ranks are being ended, for good */
    DT_JOB_ENDING,     /* no rank is left; agents leave, the last output is written */
    DT_JOB_OVER,
    DT_JOB_STATES,
};

enum dt_job_event {
    DT_EV_IDLE,         /* no host is connecting, no host has ranks */
    DT_EV_STARTED,      /* all ranks of the generation run */
    DT_EV_SPAWN_FAILED, /* a host could not start its ranks */
    DT_EV_RANK_FAILED,  /* a rank ended in a way that may be a failure */
    DT_EV_HOST_LOST,    /* an agent that had said hello is gone or silent */
    DT_EV_SETTLED,      /* all agents told the deaths they know of, or the time for it is over */
    DT_EV_STOP,         /* the user, --timeout, or a reader of our output that left */
    DT_EV_KILL,         /* the user insists */
    DT_EV_CLOSED,       /* no link is open and all output is written */

    /* What an action has decided, which happens while it runs. */
    DT_EV_USABLE,         /* LAUNCH, RELAUNCH: all hosts of the plan can be used */
    DT_EV_UNUSABLE,       /* LAUNCH: some cannot */
    DT_EV_UNREACHABLE,    /* hosts that others cannot reach are left out */
    DT_EV_RESTART,        /* DECIDE: all ranks are to be started again */
    DT_EV_FAILED,         /* DECIDE, RELAUNCH: the job has failed for good */
    DT_EV_HARMLESS,       /* DECIDE: nothing has failed after all */
    DT_EV_HARMLESS_EARLY, /* likewise, and not all ranks run yet */
    DT_JOB_EVENTS,
};

enum dt_job_action {
    DT_ACT_NONE = 1, /* expected here, and nothing is to be done; 0 would be a hole in the table */
    DT_ACT_CHECK_HOSTS, /* find out whether all hosts are usable; else name those that are not */
    DT_ACT_START,       /* START to all hosts: a generation begins */
    DT_ACT_RUN,         /* say that the job runs */
    DT_ACT_REFUSE,      /* a rank cannot be started: remember why, stop the others */
    DT_ACT_COLLECT,     /* tell all ranks to abort, ask all agents for deaths */
    DT_ACT_DECIDE,      /* name the cause, if anything has failed, and what follows from it */
    DT_ACT_CONTINUE,    /* standard input flows again */
    DT_ACT_RECOVER,     /* kill all ranks, connect lost hosts again */
    DT_ACT_RELAUNCH,    /* place ranks anew where a host did not come back; wait for the fence
                           (recovery.h) */
    DT_ACT_RECONNECT,   /* one more host is lost on the way */
    DT_ACT_FAIL,        /* end all ranks, since the job has failed */
    DT_ACT_ABANDON,     /* drop links that are still being opened, and end */
    DT_ACT_STOP,        /* end all ranks as the reason for it demands */
    DT_ACT_KILL,        /* end all ranks at once */
    DT_ACT_FINISH,      /* all ranks are gone: END to the agents */
    DT_ACT_CUT,         /* the user does not wait: close what is left */
    DT_ACT_LEAVE,       /* tell the driver that this is the end */
};

struct dt_job_step {
    enum dt_job_action action;
    enum dt_job_state next; /* before the action, which may bring about further events */
};

struct dt_job_step dt_job_fsm(enum dt_job_state state, enum dt_job_event event);

#endif
