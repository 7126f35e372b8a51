/* A rank or an auxiliary between fork and exec. */
#ifndef DT_AGENT_RANKS_RANKPROC_H
#define DT_AGENT_RANKS_RANKPROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/agent/ranks/spawn.h"

struct dt_rank_report { /* written to the error pipe in one piece: shorter than PIPE_BUF */
    uint32_t index;     /* among the host's processes */
    bool ready;         /* it waits at the gate; else it failed and has ended */
    uint8_t step;       /* enum dt_spawn_step */
    int32_t error;
    char what[1024];    /* what failed; if ready and index is 0: why it needs PMIx, or empty */
    char horovod[1024]; /* likewise: the evidence that it uses Horovod, or empty */
};

struct dt_rankproc {
    const struct dt_spawn_config *config;
    uint32_t index; /* index into config->numbers; for a rank this is its local rank */
    pid_t parent;
    int in, out, err; /* become 0, 1 and 2; these and socket are never 0, 1 or 2 */
    int socket;       /* becomes DT_SPAWN_SOCKET_FD; -1 for an auxiliary */
    int pmi;          /* becomes DT_SPAWN_PMI_FD; -1 for an auxiliary */
    int gate;         /* a byte means: execute the program; EOF means: give up */
    int go;           /* a file that then holds the payload of DT_MSG_GO */
    int errors;       /* takes struct dt_rank_report */
};

/* Call this in the child with all signals blocked. */
void dt_rankproc_run(const struct dt_rankproc *p) __attribute__((noreturn));

#endif
