/* What stands in front of each line of output: the process that wrote it, as in "[3] " or
 * "[server 0] ", and with --timestamp the local time. Pure except for TZ. */
#ifndef DT_IO_LABEL_H
#define DT_IO_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "launcher/place/role.h"

enum { DT_LABEL_MAX = DT_ROLE_NAME_MAX + 16, DT_LABEL_TIME_MAX = 40 };

/* Writes the label of the process with that number (role.h) and a NUL. Returns its length. In
 * colour, neighbouring numbers differ. */
size_t dt_label(char out[DT_LABEL_MAX], uint32_t number, uint32_t np, bool colour);

/* Writes "2026-11-21 03:22:10.123 " and a NUL. Returns its length. */
size_t dt_label_time(char out[DT_LABEL_TIME_MAX], const struct timespec *t);

#endif
