/* Ends a job: first its ranks, then its agents. Closes a connection that does not end in time.
 * These functions need nothing but struct dt_core. */
#ifndef DT_JOB_STOPPING_H
#define DT_JOB_STOPPING_H

#include "launcher/job/core/core.h"

/* Ends the ranks of a job that has failed, or that cannot start all of them. */
void dt_stopping_end_ranks(struct dt_core *c, uint32_t grace_ms);
/* The job is told to stop. Sends SIGINT to the ranks if the user interrupted the job with it, else
 * STOP to the agents. */
void dt_stopping_stop(struct dt_core *c);
void dt_stopping_kill(struct dt_core *c);       /* at once */
void dt_stopping_end_agents(struct dt_core *c); /* no rank is left */
void dt_stopping_cut(struct dt_core *c);        /* no longer waits for agents and output */

void dt_stopping_on_patience_over(struct dt_core *c);           /* DT_TIMER_PATIENCE */
void dt_stopping_on_reader_late(struct dt_core *c);             /* DT_TIMER_READER */
void dt_stopping_on_cut(struct dt_core *c);                     /* DT_TIMER_CUT */
void dt_stopping_on_timeout(struct dt_core *c);                 /* DT_TIMER_TIMEOUT */
void dt_stopping_on_stdin_failed(struct dt_core *c, int error); /* error: as errno */
/* what: "standard output", or a file; error: as errno. */
void dt_stopping_on_output_failed(struct dt_core *c, const char *what, int error);

#endif
