/* The calls of libdtrun that failed for good in one generation, which a program must not ignore.
 * Pure. */
#ifndef DT_JOB_STATE_FAILED_CALLS_H
#define DT_JOB_STATE_FAILED_CALLS_H

#include <stdbool.h>

#include "runtime/wire/msg.h"

struct dt_failed_call {
    char *text; /* NULL: none has failed */
    uint64_t comm;
    uint32_t rank;
};

struct dt_failed_calls {         /* zero-initialised */
    struct dt_failed_call world; /* why DT_WORLD failed */
    struct dt_failed_call comm;  /* why the last other communicator did */
    bool ignored;                /* a rank that exited with 0 had not dealt with that */
};

void dt_failed_calls_note(struct dt_failed_calls *f, const struct dt_msg_failed *m);
/* All ranks exited with 0. Returns why the job has failed all the same, which the caller frees, or
 * NULL. */
char *dt_failed_calls_judge(const struct dt_failed_calls *f);
void dt_failed_calls_forget(struct dt_failed_calls *f); /* as zero-initialised */

#endif
