/* Finding the program that a rank is to run, and saying why it cannot run: as seen from the calling
 * process's working directory, which in the forked child is the rank's. */
#ifndef DT_BASE_PROGRAM_PROGRAM_H
#define DT_BASE_PROGRAM_PROGRAM_H

#include <stddef.h>

/* Writes the path to execute for name: as it stands when it has a slash, else from the directories
 * of search (NULL: the usual ones). Returns 0 or an errno: ENOENT, or EACCES and others for a
 * file that is there and cannot be executed. */
int dt_program_find(char *path, size_t size, const char *name, const char *search);

/* After execve failed with error: writes what a message should name (the path, or more when the
 * fault is not that the file is missing or forbidden), and returns the errno to report. */
int dt_program_explain(char *what, size_t size, const char *path, int error);

#endif
