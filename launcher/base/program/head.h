/* Reads the beginning of a file that may be a script. */
#ifndef DT_BASE_PROGRAM_HEAD_H
#define DT_BASE_PROGRAM_HEAD_H

#include <stddef.h>

enum { DT_HEAD_BYTES = 64 * 1024 }; /* enough for what a script imports */

/* Reads the first bytes of the file, at most size, and returns how many. Reads regular files only:
 * reading a pipe would block. */
size_t dt_head_read(const char *path, char *bytes, size_t size);

#endif
