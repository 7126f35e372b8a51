/* The environment with which a process was started, in /proc/PID/environ. */
#ifndef DT_AGENT_SWEEP_PROCENV_H
#define DT_AGENT_SWEEP_PROCENV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "launcher/base/strbuf.h"

/* Reads it into text, which is empty. Returns false if there is nothing that may be read. */
bool dt_procenv_read(struct dt_strbuf *text, pid_t pid);

/* Returns the value of the variable in the n bytes of text, or NULL. Of several entries the last
 * one counts; one that the end of the text truncates does not. Pure. */
const char *dt_procenv_find(const char *text, size_t n, const char *name);

#endif
