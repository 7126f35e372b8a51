/* Runs nvidia-smi in its own process. If it waits for the driver inside the kernel, it cannot be
 * ended: it is killed, and reaped later with the caller's other children. */
#ifndef DT_AGENT_FACTS_SMI_H
#define DT_AGENT_FACTS_SMI_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/agent/sweep/sweep.h"
#include "launcher/base/strbuf.h"

struct dt_smi {
    pid_t pid; /* 0: it does not run */
    int pidfd; /* -1: the kernel has none (before Linux 5.3) */
    int out;   /* its standard output */
};

/* argv[0] is nvidia-smi; if it is not installed, it writes nothing. Returns false if no process can
 * be started. */
bool dt_smi_start(struct dt_smi *smi, const char *const *argv);

/* Kills it. No sweep waits for it (groups). */
void dt_smi_end(struct dt_smi *smi, struct dt_groups *groups);

/* Runs it and appends what it writes within 5 s. Prints a message on standard error if it does not
 * end. */
void dt_smi_run(struct dt_strbuf *text, const char *const *argv, struct dt_groups *groups);

#endif
