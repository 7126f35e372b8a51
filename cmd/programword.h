/* Whether the word in the program's place can be a program, as far as this machine's files show. */
#ifndef DT_CMD_PROGRAMWORD_H
#define DT_CMD_PROGRAMWORD_H

#include <stdbool.h>

#include "launcher/base/error.h"

/* Rejects a Python file that exists here but cannot be executed under the given name. wdir is
 * --wdir, or NULL. */
int dt_programword_check(const char *name, const char *wdir, struct dt_error *err);

/* Returns whether word looks like a host and names no program here. */
bool dt_programword_may_be_host(const char *word);
bool dt_programword_is_here(const char *name);

#endif
