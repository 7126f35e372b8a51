/* The calls of libdtrun that failed for good in one generation. A program must not ignore them.
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
    struct dt_failed_call world; /* why the first call on DT_WORLD failed */
    struct dt_failed_call comm;  /* why the last call on another communicator failed */
    bool ignored; /* a rank exited with 0 without having freed a communicator that failed */
};

void dt_failed_calls_note(struct dt_failed_calls *f, const struct dt_msg_failed *m);
/* Call this if all ranks exited with 0. Returns why the job has failed nevertheless, which the
 * caller frees, or NULL if it has not. */
char *dt_failed_calls_judge(const struct dt_failed_calls *f);
void dt_failed_calls_forget(struct dt_failed_calls *f); /* makes it zero-initialised again */

#endif
