/* The engine's timers. Sets and stops them through the ops, and knows which are running. */
#ifndef DT_JOB_STATE_TIMERS_H
#define DT_JOB_STATE_TIMERS_H

#include <stdbool.h>

#include "launcher/job/ops.h"

struct dt_timers {
    const struct dt_job_ops *ops;
    uint64_t due_ns[DT_JOB_TIMERS]; /* 0: it does not run */
};

void dt_timers_init(struct dt_timers *t, const struct dt_job_ops *ops);
uint64_t dt_timers_now_ns(const struct dt_timers *t);
void dt_timers_set(struct dt_timers *t, enum dt_job_timer timer, uint64_t ms);
/* Makes a running timer expire within ms at the latest. Does nothing if it does not run. */
void dt_timers_shorten(struct dt_timers *t, enum dt_job_timer timer, uint64_t ms);
/* Makes a running timer expire that much later. Does nothing if it does not run. */
void dt_timers_delay(struct dt_timers *t, enum dt_job_timer timer, uint64_t ns);
void dt_timers_stop(struct dt_timers *t, enum dt_job_timer timer);
bool dt_timers_is_running(const struct dt_timers *t, enum dt_job_timer timer);
void dt_timers_expired(struct dt_timers *t, enum dt_job_timer timer); /* on its event */

#endif
