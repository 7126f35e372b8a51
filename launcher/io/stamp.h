/* The local time in front of each line with --timestamp: "2026-11-21 03:22:10.123 ". */
#ifndef DT_IO_STAMP_H
#define DT_IO_STAMP_H

#include <stddef.h>
#include <time.h>

enum { DT_STAMP_MAX = 40 };

/* Writes the stamp and a NUL; returns its length. */
size_t dt_stamp(char out[DT_STAMP_MAX], const struct timespec *t);

#endif
