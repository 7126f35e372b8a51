/* What the kernel reports about a process in /proc/PID/status. */
#ifndef DT_AGENT_SWEEP_PROCSTATUS_H
#define DT_AGENT_SWEEP_PROCSTATUS_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/base/strbuf.h"

/* Empty if there is no such process. The caller frees it. */
struct dt_strbuf dt_procstatus_read(pid_t pid);

/* Returns whether the set has the signal, for example "SigIgn" those that the process ignores. */
bool dt_procstatus_has(const struct dt_strbuf *status, const char *set, int signo);

#endif
