/* The result of a job: its exit code, and why it ended. Pure. */
#ifndef DT_JOB_STATE_OUTCOME_H
#define DT_JOB_STATE_OUTCOME_H

#include <stdint.h>

#include "launcher/watch/cause.h"

struct dt_outcome { /* zero-initialised */
    int exit_code;
    int ended_by; /* the signal that ended it, or 0 */
    char *reason; /* why the job ended, for the report; NULL: it did not fail */
    bool has_cause;
    struct dt_death cause; /* valid when reason is set and has_cause */
    uint64_t lines_since;  /* lines of output since dtrun has named the cause */
};

/* takes over text; only the first reason counts */
void dt_outcome_set_reason(struct dt_outcome *o, char *text);
void dt_outcome_free(struct dt_outcome *o);

#endif
