/* Reads which shared libraries a program or library names, without running it. */
#ifndef DT_BASE_PROGRAM_ELFNEEDS_H
#define DT_BASE_PROGRAM_ELFNEEDS_H

#include <stdbool.h>

/* name is that of a library, and folders, which is not NULL, says where the file wants it to be
 * found: "$ORIGIN/../lib:/opt/lib". Returns whether to stop. */
typedef bool dt_elf_visit(void *arg, const char *name, const char *folders);

/* Visits the libraries that the program or library at path needs. Returns whether a visit stopped
 * it. path may name any file; one that is not for this kind of machine needs nothing. */
bool dt_elf_needed(const char *path, dt_elf_visit *visit, void *arg);

#endif
