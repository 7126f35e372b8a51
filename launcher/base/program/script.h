/* Finds Python scripts in a command line and looks into them. */
#ifndef DT_BASE_PROGRAM_SCRIPT_H
#define DT_BASE_PROGRAM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* text holds the first 64 KiB of a script. */
typedef bool dt_script_test(const char *text, size_t n);

/* path is the program, argv its arguments. Returns the first script that passes the test, or NULL:
 * the program, an argument, or a word in the text of a shell or shell script among them. For "-m
 * MODULE" it is the module's file. Also tried are the first 32 files, the script among them, that
 * the script and they import from its folder or below. The string is valid until the next call. */
const char *dt_script_find(const char *path, const struct dt_strs *argv, dt_script_test *passes);

#endif
