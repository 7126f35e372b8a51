/* Fills in the part of START that depends only on the request. It is the same in every generation,
 * and in a check. */
#ifndef DT_JOB_START_H
#define DT_JOB_START_H

#include "launcher/job/config.h"
#include "runtime/wire/msg.h"

/* host is an index into the request's hosts, file_dir the directory of its pushed files, or NULL.
 * The message points to what the request holds. */
struct dt_msg_start dt_start_of(const struct dt_job_config *config, size_t host,
                                const char *file_dir);

#endif
