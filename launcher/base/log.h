/* dtrun's own messages: each is a line on standard error that begins with "dtrun: ". */
#ifndef DT_BASE_LOG_H
#define DT_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Replaces control characters by '?', because they would move the cursor or begin a line in the
 * middle of a message. dt_say and dt_verbose call this. Control characters above 0x7f count as
 * well, alone or as UTF-8: many terminals treat 0x9b and U+009B like ESC [. */
void dt_log_tame(char *text);

void dt_log_set_verbose(bool on);
void dt_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));     /* always */
void dt_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with --verbose */
/* What a host has said; a detail only with --verbose. A host may say any number of lines, so the
 * sink may drop them. */
void dt_say_foreign(bool detail, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* While a sink is set, complete lines (with prefix and newline) go to it instead of standard error,
 * so that they do not end up in the middle of a rank's line. NULL removes the sink. */
typedef void (*dt_log_sink_f)(void *arg, const char *line, size_t n, bool foreign);
void dt_log_set_sink(dt_log_sink_f sink, void *arg);

#endif
