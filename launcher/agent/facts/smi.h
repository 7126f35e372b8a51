/* nvidia-smi, in a process of its own. One that waits for the driver inside the kernel cannot be
 * ended: it is killed, and left to be reaped by whoever reaps the caller's children. */
#ifndef DT_AGENT_SMI_H
#define DT_AGENT_SMI_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/agent/sweep/sweep.h"
#include "launcher/base/strbuf.h"

struct dt_smi {
    pid_t pid; /* 0: none runs */
    int pidfd; /* -1: the kernel has none (before Linux 5.3) */
    int out;   /* what it writes on standard output can be read here */
};

/* argv[0] is nvidia-smi. Where there is none, it writes nothing. False: it cannot be started. */
bool dt_smi_start(struct dt_smi *smi, const char *const *argv);

/* Kills it. No sweep waits for it (groups). */
void dt_smi_end(struct dt_smi *smi, struct dt_groups *groups);

/* Runs it and appends what it writes in at most 5 s; then says on standard error if it does not
 * end. */
void dt_smi_run(struct dt_strbuf *text, const char *const *argv, struct dt_groups *groups);

#endif
