/* A rank, or an auxiliary, between fork and exec. */
#ifndef DT_AGENT_RANKPROC_H
#define DT_AGENT_RANKPROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/agent/ranks/spawn.h"

struct dt_rank_report { /* written to the error pipe whole: it is shorter than PIPE_BUF */
    uint32_t index;     /* among the host's processes */
    bool ready;         /* waits at the gate; else it failed, and has ended */
    uint8_t step;       /* enum dt_spawn_step */
    int32_t error;
    char what[1024];    /* what failed; of the first that is ready: why it needs PMIx, or empty */
    char horovod[1024]; /* of the first that is ready: what tells that it uses Horovod, or empty */
};

struct dt_rankproc {
    const struct dt_spawn_config *config;
    uint32_t index; /* in config->numbers: of a rank it is the local rank */
    pid_t parent;
    int in, out, err; /* become 0, 1 and 2; none of these and the next is 0, 1 or 2 */
    int socket;       /* becomes DT_SPAWN_SOCKET_FD; -1: an auxiliary has none */
    int pmi;          /* DT_SPAWN_PMI_FD; likewise */
    int gate;         /* the program is executed when a byte can be read; EOF: never mind */
    int go;           /* a file that holds the DT_MSG_GO's payload by then */
    int errors;       /* takes struct dt_rank_report */
};

/* To be called in the child with all signals blocked. */
void dt_rankproc_run(const struct dt_rankproc *p) __attribute__((noreturn));

#endif
