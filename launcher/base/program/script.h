/* Python scripts among the words of a command, and what they say. */
#ifndef DT_BASE_PROGRAM_SCRIPT_H
#define DT_BASE_PROGRAM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* text: the first 64 KiB of a script. */
typedef bool dt_script_test(const char *text, size_t n);

/* path: the program; argv: its arguments. Returns which of them is a script that passes the test,
 * or NULL; where "-m" stands before a module's name, that is the module's file. The string is valid
 * until the next call. */
const char *dt_script_find(const char *path, const struct dt_strs *argv, dt_script_test *passes);

#endif
