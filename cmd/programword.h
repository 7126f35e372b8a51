/* Whether the word that stands for the program can be one, as far as this machine's files tell. */
#ifndef DT_CMD_PROGRAMWORD_H
#define DT_CMD_PROGRAMWORD_H

#include <stdbool.h>

#include "launcher/base/error.h"

/* Refuses a Python file that is here and cannot be executed as it was named. wdir: --wdir, or NULL.
 */
int dt_programword_check(const char *name, const char *wdir, struct dt_error *err);

/* Whether word is written like a host and names no program here. */
bool dt_programword_may_be_host(const char *word);
bool dt_programword_is_here(const char *name);

#endif
