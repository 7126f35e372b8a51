/* Finds Python scripts in a command line and looks into them. */
#ifndef DT_BASE_PROGRAM_SCRIPT_H
#define DT_BASE_PROGRAM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

/* text holds the first 64 KiB of a script. */
typedef bool dt_script_test(const char *text, size_t n);

/* path is the program, argv its arguments. Returns the first script that passes the test, or NULL.
 * Scripts are the program, its arguments, the words in the text of a shell or shell script among
 * them, for "-m MODULE" the module's file, and the text of "python3 -c". With each script it also
 * tests the files that the script imports, directly or not, from its folder or below: 32 files in
 * all. The string is valid until the next call. */
const char *dt_script_find(const char *path, const struct dt_strs *argv, dt_script_test *passes);

#endif
