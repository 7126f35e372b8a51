/* What dtrun itself says: standard error, each line beginning with "dtrun: ". */
#ifndef DT_BASE_LOG_H
#define DT_BASE_LOG_H

#include <stdbool.h>

void dt_log_set_verbose(bool on);
void dt_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));     /* always */
void dt_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with --verbose */

#endif
