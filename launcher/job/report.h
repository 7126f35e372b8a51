/* --report: the result of the job, whether or not it failed, as JSON. */
#ifndef DT_JOB_REPORT_H
#define DT_JOB_REPORT_H

#include "launcher/job/core/core.h"
#include "launcher/job/recovery.h"

/* seconds: how long the job ran. The caller frees the result. */
char *dt_report_make(const struct dt_core *c, const struct dt_recovery *r, double seconds);

#endif
