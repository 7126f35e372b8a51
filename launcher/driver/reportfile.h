/* --report FILE: the file with the result of the job. */
#ifndef DT_DRIVER_REPORTFILE_H
#define DT_DRIVER_REPORTFILE_H

#include "launcher/base/error.h"

/* Before the job: returns 0, or -1 with err (exit code 2) if no report could be written there. */
int dt_report_check(const char *path, struct dt_error *err);

/* Writes beside path and renames, so that a reader never sees half a report. 0 or -1 with err. */
int dt_report_write(const char *path, const char *text, struct dt_error *err);

#endif
