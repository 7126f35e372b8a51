/* --report FILE: what became of the job, as JSON; also of a job that failed. */
#ifndef DT_JOB_REPORT_H
#define DT_JOB_REPORT_H

#include "launcher/base/error.h"

struct dt_job;

/* Before the job: 0, or -1 with err (exit code 2) when no report could be written there. */
int dt_report_check(const char *path, struct dt_error *err);

/* Writes beside path and renames, so that a reader never sees half a report. 0 or -1 with err. */
int dt_report_write(const struct dt_job *job, const char *path, struct dt_error *err);

#endif
