/* The life of a job as a table: which events matter in each state, with the action and the next
 * state. Pure; job.c maps the actions to functions. */
#ifndef DT_JOB_CORE_JOB_FSM_H
#define DT_JOB_CORE_JOB_FSM_H

enum dt_job_state {
    DT_JOB_CONNECTING, /* dtrun opens links to all hosts */
    DT_JOB_STARTING,   /* START was sent; not all hosts have said STARTED */
    DT_JOB_RUNNING,
    DT_JOB_FAILING,    /* a rank or host died; dtrun collects what the agents know of deaths */
    DT_JOB_RECOVERING, /* dtrun kills all ranks, to start them again */
    DT_JOB_STOPPING,   /* dtrun ends all ranks for good */
    DT_JOB_ENDING,     /* no rank is left; the agents exit, and dtrun writes the last output */
    DT_JOB_OVER,
    DT_JOB_STATES,
};

enum dt_job_event {
    DT_EV_IDLE,         /* no host is connecting, no host has ranks */
    DT_EV_STARTED,      /* all ranks of the generation run */
    DT_EV_SPAWN_FAILED, /* a host could not start its ranks */
    DT_EV_RANK_FAILED,  /* a rank ended in a way that may be a failure */
    DT_EV_HOST_LOST,    /* an agent that had said hello is gone or silent */
    /* all agents have reported the deaths they know of, or the time for that is over */
    DT_EV_SETTLED,
    DT_EV_STOP,   /* a signal or --timeout ends the job, or the reader of dtrun's output has gone */
    DT_EV_KILL,   /* the user insists: ends everything at once */
    DT_EV_CLOSED, /* no link is open, and all output has been written */

    /* Results of an action, raised while it runs. */
    DT_EV_USABLE,         /* CHECK_HOSTS, RELAUNCH: all hosts of the plan can be used */
    DT_EV_UNUSABLE,       /* CHECK_HOSTS: some cannot */
    DT_EV_LEFT_OUT,       /* the job leaves out hosts that are stuck or unreachable */
    DT_EV_RESTART,        /* DECIDE, and when dtrun leaves a host: all ranks are started again */
    DT_EV_FAILED,         /* DECIDE, RELAUNCH: the job has failed for good */
    DT_EV_HARMLESS,       /* DECIDE: nothing has failed after all */
    DT_EV_HARMLESS_EARLY, /* the same, and not all ranks run yet */
    DT_JOB_EVENTS,
};

enum dt_job_action {
    DT_ACT_NONE,        /* nothing is done, and the state stays */
    DT_ACT_CHECK_HOSTS, /* find out whether all hosts can be used */
    DT_ACT_START,       /* send START to all hosts: a generation begins */
    DT_ACT_RUN,         /* say that the job runs */
    DT_ACT_REFUSE,      /* a rank cannot be started: remember why, stop the others */
    DT_ACT_COLLECT,     /* tell all ranks to abort, ask all agents for deaths */
    DT_ACT_DECIDE,      /* if anything has failed, name the cause and what follows from it */
    DT_ACT_CONTINUE,    /* standard input flows again */
    DT_ACT_RECOVER,     /* kill all ranks, and connect to lost hosts again */
    DT_ACT_RELAUNCH,    /* place ranks anew where a host did not come back; wait for the fence
                           (recovery.h) */
    DT_ACT_RECONNECT,   /* another host was lost during recovery: connect to it again */
    DT_ACT_FAIL,        /* end all ranks, because the job has failed */
    DT_ACT_ABANDON,     /* drop links that are still being opened, and end */
    DT_ACT_STOP,        /* end all ranks in the way that fits the reason */
    DT_ACT_KILL,        /* end all ranks at once */
    DT_ACT_FINISH,      /* all ranks are gone: send END to the agents */
    DT_ACT_CUT,         /* the user does not want to wait: close what is left */
    DT_ACT_LEAVE,       /* tell the driver that this is the end */
};

struct dt_job_step {
    enum dt_job_action action;
    enum dt_job_state next; /* entered before the action runs, which may raise further events */
};

struct dt_job_step dt_job_fsm(enum dt_job_state state, enum dt_job_event event);

#endif
