/* Looks several times at what the ranks of this host, and processes below them, have loaded, and
 * reports which libraries they use without knowing their place. */
#ifndef DT_AGENT_UNSERVED_PROCSCAN_H
#define DT_AGENT_UNSERVED_PROCSCAN_H

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "launcher/agent/unserved/mapped.h"

struct dt_procscan;

struct dt_procscan_finding {
    unsigned library; /* of enum dt_library */
    bool bare;        /* the process has none of its rank's environment */
    uint32_t local_rank;
    pid_t pid; /* the rank, or a process below it */
    char path[DT_MAPPED_PATH];
};

typedef void dt_procscan_found(void *arg, const struct dt_procscan_finding *finding);

/* Looks for this set of libraries. The ranks have been told what those in served need. */
struct dt_procscan_set {
    unsigned libraries, served;
};

/* The ranks, children of this process, have just started; pids is by local rank. Reports each
 * library at most once. */
struct dt_procscan *dt_procscan_create(uv_loop_t *loop, const pid_t *pids, uint32_t n,
                                       struct dt_procscan_set set, dt_procscan_found *found,
                                       void *arg);
void dt_procscan_destroy(struct dt_procscan *s); /* accepts NULL */

#endif
