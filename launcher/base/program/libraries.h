/* Finds the shared libraries that a program loads, without running it. */
#ifndef DT_BASE_PROGRAM_LIBRARIES_H
#define DT_BASE_PROGRAM_LIBRARIES_H

#include <stdbool.h>

typedef bool dt_libraries_test(void *arg, const char *name);

/* Returns whether a library passes that the program at path needs, or one of its libraries does: 64
 * files are read. folders is the program's LD_LIBRARY_PATH, or NULL. The loader's cache and
 * configuration are not read, so libraries in unusual folders of the system are not found. */
bool dt_libraries_find(const char *path, const char *folders, dt_libraries_test *passes, void *arg);

#endif
