/* --report FILE: the file with the result of the job. */
#ifndef DT_DRIVER_REPORTFILE_H
#define DT_DRIVER_REPORTFILE_H

#include <stdbool.h>

#include "launcher/base/error.h"

/* Call this before the job. Returns 0, or -1 with err (exit code 2) if no report could be written
 * to path. */
int dt_report_check(const char *path, struct dt_error *err);

/* Writes a file beside path and renames it, so that a reader never sees half a report. A
 * device, a FIFO and dtrun's own output are written to instead. Returns 0, or -1 with err. */
int dt_report_write(const char *path, const char *text, struct dt_error *err);
bool dt_report_has_dir(const char *path); /* the directory of the file exists */

#endif
