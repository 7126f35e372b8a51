/* Which shared libraries a program names as needed, without running it. */
#ifndef DT_BASE_PROGRAM_ELFNEEDS_H
#define DT_BASE_PROGRAM_ELFNEEDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the file at path is a program for machines of this kind that needs a library whose name
 * begins with prefix; name (of size bytes) then holds the first such. Any file may be given. */
bool dt_elf_needs(const char *path, const char *prefix, char *name, size_t size);

#endif
