/* --check: whether this job would start, and whether one of its hosts differs from the others. */
#ifndef DT_CHECK_CHECK_H
#define DT_CHECK_CHECK_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "launcher/job/config.h"
#include "launcher/session/session.h"

/* Connects to all hosts of the request, including those that would have no rank, and asks each for
 * the facts of dt_msg_facts. Each host also prepares its ranks as a job does before any of them
 * runs: it forks the processes, which enter the working directory and find the program (/bin/sh if
 * argv is empty). Then it kills them. The result goes to standard output, as a table or as JSON;
 * problems and remarks go to standard error.
 *
 * Returns 0 if a job would start, 125 if it would not, or the exit code of a job that a signal or
 * the time limit stops. Returns -1 with err if standard output cannot be written. */
int dt_check_run(const struct dt_job_config *config, const struct dt_access *access, bool json,
                 struct dt_error *err);

#endif
