/* What dtrun itself says: standard error, each line beginning with "dtrun: ". */
#ifndef DT_BASE_LOG_H
#define DT_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Control characters, which would move the cursor or begin a line in the middle of a message,
 * become '?'; what dt_say and dt_verbose write has none. Those above 0x7f count as well, alone or
 * as UTF-8: many terminals take 0x9b and U+009B for what ESC [ is. */
void dt_log_tame(char *text);

void dt_log_set_verbose(bool on);
void dt_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));     /* always */
void dt_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with --verbose */

/* While a sink is set, lines (complete, with prefix and end) go there and not to standard error: it
 * keeps them from standing in the middle of a rank's line. NULL takes it away. */
typedef void (*dt_log_sink_f)(void *arg, const char *line, size_t n);
void dt_log_set_sink(dt_log_sink_f sink, void *arg);

#endif
