/* --report: what became of the job, as JSON; also of a job that failed. */
#ifndef DT_JOB_REPORT_H
#define DT_JOB_REPORT_H

#include "launcher/job/core/core.h"
#include "launcher/job/recovery.h"

/* Of a job that has run for so long. The caller frees it. */
char *dt_report_make(const struct dt_core *c, const struct dt_recovery *r, double seconds);

#endif
