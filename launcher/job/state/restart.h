/* Decides whether a job that failed is started again. Pure. */
#ifndef DT_JOB_STATE_RESTART_H
#define DT_JOB_STATE_RESTART_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DT_RESTARTS_WITHOUT_PROGRESS = 3,
    DT_RESTART_DELAY_MAX_S = 30,
    DT_RESTART_RUN_S = 60, /* a program without checkpoints progresses if it runs for this long */
};

/* What happens to the ranks of a host that does not come back. */
enum dt_host_loss {
    DT_HOST_LOSS_MOVE, /* they move to other hosts */
    DT_HOST_LOSS_STOP, /* the job ends */
};

struct dt_restart {
    int max_restarts;     /* --max-restarts, or -1 */
    uint32_t restarts;    /* so far */
    uint32_t no_progress; /* how many of the last restarts in a row brought no progress */
    /* the program saves or restores checkpoints, so a recovery is complete when it has restored */
    bool checkpoints;
    bool restoring;      /* it has called dt_checkpoint_restore */
    bool saved;          /* it has committed a checkpoint in this job, even if that has been lost */
    int64_t newest;      /* step of the newest checkpoint known to exist, or -1 */
    int64_t newest_last; /* the same at the last restart */
    bool linked;         /* some rank called dt_init, so dtrun can see progress */
    /* newest step that any rank is known to have reached in this generation, or -1 */
    int64_t reached;
    bool reached_is_sure; /* a rank's exit has reported its step; a lost host reports nothing */
};

enum dt_restart_verdict {
    DT_RESTART_YES,
    /* the program neither saves nor restores, and --max-restarts was not given */
    DT_RESTART_NO_CHECKPOINT,
    DT_RESTART_LIMIT, /* --max-restarts is used up */
    /* the last restarts brought no newer checkpoint, and --max-restarts was not given */
    DT_RESTART_NO_PROGRESS,
};

struct dt_restart dt_restart_init(int max_restarts);
/* The program has committed this checkpoint, which is now the newest one, also if its step is lower
 * than that of another: a save sets later steps aside. */
void dt_restart_committed(struct dt_restart *r, int64_t step);
/* The program has restored this checkpoint (-1: none), perhaps of an earlier job. Newer ones are
 * lost. */
void dt_restart_restored(struct dt_restart *r, int64_t step);
/* exited: the failure is a rank that exited by itself. If that is while the job restores for the
 * first time, it would probably do so again. */
enum dt_restart_verdict dt_restart_verdict(const struct dt_restart *r, bool exited);
/* The job is being restarted. Its ranks have run for ran_s since the last restart. */
void dt_restart_count(struct dt_restart *r, double ran_s);
/* Returns how long the restart that was counted last must wait: 0, 1, 2, 4 ... s while there is no
 * progress. */
unsigned dt_restart_delay_s(const struct dt_restart *r);

/* A rank has completed this step (-1: none). exited: its exit has reported this. */
void dt_restart_reached(struct dt_restart *r, int64_t step, bool exited);
/* The job continues from this step (-1: from the beginning). Returns how many steps it has lost, or
 * -1 if that is not known. */
int64_t dt_restart_go_on(struct dt_restart *r, int64_t restored);

/* Returns how many steps must be repeated: the newest step that any rank had reached, minus the
 * restored step (-1: none was restored). A program that starts from the beginning counts its steps
 * from 1. */
int64_t dt_restart_lost_steps(int64_t reached, int64_t restored);
/* Returns the sum. more < 0 means unknown, and adds nothing. The sum stays at INT64_MAX at most,
 * because programs may number their steps as they like. */
int64_t dt_restart_add_lost(int64_t lost, int64_t more);

#endif
