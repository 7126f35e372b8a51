/* --check: would this job start, and is one of its hosts unlike the others? */
#ifndef DT_CHECK_CHECK_H
#define DT_CHECK_CHECK_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "launcher/job/config.h"
#include "launcher/session/session.h"

/* Connects to all hosts of the request, those that would have no rank too, and asks each for what
 * dt_msg_facts holds. Each also prepares its ranks as far as a job does before any of them runs:
 * the processes are forked, enter the working directory and find the program (/bin/sh when argv is
 * empty), and are killed then. What was found goes to standard output, as a table or as JSON;
 * problems and remarks to standard error.
 *
 * Returns 0 when a job would start, 125 when it would not, what a job that is stopped by a signal
 * or by the time limit exits with; or -1 with err when standard output cannot be written. */
int dt_check_run(const struct dt_job_config *config, const struct dt_access *access, bool json,
                 struct dt_error *err);

#endif
