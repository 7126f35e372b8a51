/* Whether the word that stands for the program can be one, as far as this machine's files tell. */
#ifndef DT_CMD_PROGRAMWORD_H
#define DT_CMD_PROGRAMWORD_H

#include <stdbool.h>

#include "launcher/base/error.h"

/* Refuses a Python file that is here and cannot be executed as it was named. wdir: --wdir, or NULL.
 */
int dt_programword_check(const char *name, const char *wdir, struct dt_error *err);

/* Whether word, directly after -H, was probably meant to be a host: it is written like one and no
 * program here, while next (NULL: none) is. */
bool dt_programword_is_host(const char *word, const char *next);

#endif
