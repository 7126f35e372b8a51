/* The part of START that the request alone decides: the same in every generation, and in a check.
 */
#ifndef DT_SESSION_START_H
#define DT_SESSION_START_H

#include "launcher/job/config.h"
#include "runtime/wire/msg.h"

/* host: index into the request's hosts. file_dir: where its pushed files are, or NULL. The message
 * points to what the request holds. */
struct dt_msg_start dt_start_of(const struct dt_job_config *config, size_t host,
                                const char *file_dir);

#endif
