/* Finds the program that a rank is to run, and explains why it cannot run. Paths are relative to
 * the calling process's working directory, which in the forked child is the rank's. */
#ifndef DT_BASE_PROGRAM_PROGRAM_H
#define DT_BASE_PROGRAM_PROGRAM_H

#include <stddef.h>

/* Writes the path to execute for name: name itself if it has a slash, else the first match in the
 * directories of search (NULL: the usual ones). Returns 0 or an errno: ENOENT, or EACCES and others
 * for a file that exists and cannot be executed, whose path it then writes. */
int dt_program_find(char *path, size_t size, const char *name, const char *search);

/* Call this after execve failed with error. Writes what a message should name and returns the errno
 * to report: the path and error, or, if the file exists and may be executed, what is wrong with it,
 * and ENOEXEC. */
int dt_program_explain(char *what, size_t size, const char *path, int error);

#endif
