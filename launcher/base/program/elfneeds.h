/* Finds the shared libraries that a program needs, without running it. */
#ifndef DT_BASE_PROGRAM_ELFNEEDS_H
#define DT_BASE_PROGRAM_ELFNEEDS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the file at path is a program for this kind of machine that needs a library whose
 * name begins with prefix. name (of size bytes) then holds the first such library. path may name
 * any file. */
bool dt_elf_needs(const char *path, const char *prefix, char *name, size_t size);

#endif
