/* Writes to a blocking descriptor until everything is written. */
#ifndef DT_WIRE_WRITEALL_H
#define DT_WIRE_WRITEALL_H

#include <stddef.h>

int dt_write_all(int fd, const void *data, size_t n); /* 0, or -1 with errno */

#endif
