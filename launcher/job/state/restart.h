/* Whether a job that failed is started again. Pure. */
#ifndef DT_JOB_STATE_RESTART_H
#define DT_JOB_STATE_RESTART_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_RESTARTS_WITHOUT_PROGRESS = 3, DT_RESTART_DELAY_MAX_S = 30 };

/* What becomes of the ranks of a host that does not come back. */
enum dt_host_loss {
    DT_HOST_LOSS_MOVE, /* they run on the others */
    DT_HOST_LOSS_STOP, /* the job ends */
};

struct dt_restart {
    int max_restarts;     /* --max-restarts, or -1 */
    uint32_t restarts;    /* so far */
    uint32_t no_progress; /* of these, the last so many brought no newer checkpoint */
    bool checkpoints;     /* the program saves or restores: a restart ends when it has restored */
    bool saved;           /* it has committed one in this job, even if that is lost */
    int64_t newest;       /* step of the newest that is known to be there, or -1 */
    int64_t newest_last;  /* the same at the last restart */
    bool linked;          /* some rank called dt_init: progress can be seen */
    int64_t reached;      /* newest step known of any rank in this generation, or -1 */
    bool reached_is_sure; /* a rank's exit has reported it; a lost host reports nothing */
};

enum dt_restart_verdict {
    DT_RESTART_YES,
    DT_RESTART_NO_CHECKPOINT, /* it neither saves nor restores, and --max-restarts was not given */
    DT_RESTART_LIMIT,         /* --max-restarts is used up */
    DT_RESTART_NO_PROGRESS,   /* --max-restarts was not given */
};

struct dt_restart dt_restart_init(int max_restarts);
/* The program has committed this checkpoint. */
void dt_restart_committed(struct dt_restart *r, int64_t step);
/* It has gone on from this one, perhaps of an earlier job (-1: from none): newer ones are lost. */
void dt_restart_restored(struct dt_restart *r, int64_t step);
enum dt_restart_verdict dt_restart_verdict(const struct dt_restart *r);
void dt_restart_count(struct dt_restart *r); /* the job is being restarted */
/* How long the restart that was counted last waits: 0, 1, 2, 4 ... s while there is no progress. */
unsigned dt_restart_delay_s(const struct dt_restart *r);

/* A rank has done this step (-1: none); exited: and has exited. */
void dt_restart_reached(struct dt_restart *r, int64_t step, bool exited);
/* The job goes on from this step (-1: from the beginning). Returns how many steps it has lost, or
 * -1: that is not known. */
int64_t dt_restart_go_on(struct dt_restart *r, int64_t restored);

/* Steps that were done and must be done again: the newest step any rank had reached, less the step
 * that was restored (-1: none was). Steps are counted from 1 where a program begins anew. */
int64_t dt_restart_lost_steps(int64_t reached, int64_t restored);
/* The sum; more < 0: not known, and nothing to add. Programs may number their steps as they like:
 * no sum is above INT64_MAX. */
int64_t dt_restart_add_lost(int64_t lost, int64_t more);

#endif
