/* The ranks of one START, shared by the files that move them: generation.c (from the fork to the
 * end), resources.c (what they get of the host), mpinews.c (what their MPI asks for),
 * horovodnews.c (what their Horovod does), ranknews.c (what they tell) and deaths.c (how they
 * ended).
 */
#ifndef DT_AGENT_GENERATIONSTATE_H
#define DT_AGENT_GENERATIONSTATE_H

#include "launcher/agent/generation.h"
#include "launcher/agent/horovod/server.h"
#include "launcher/agent/io/relay.h"
#include "launcher/agent/io/stdinfeed.h"
#include "launcher/agent/mpi/pmixhelper.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/agent/ranks/injector.h"
#include "launcher/agent/ranks/spawn.h"

/* SPAWNING -> RUNNING -> SWEEPING -> FLUSHING -> OVER; a failed spawn goes to SWEEPING at once. */
enum dt_generation_phase {
    SPAWNING, /* what earlier generations left is being killed; then the processes are forked, and
                 not all have executed the program: deaths are kept back */
    RUNNING,
    SWEEPING, /* all processes are reaped; what they left behind is being killed */
    FLUSHING, /* no process is left; their output is being sent */
    OVER,
};

struct dt_process { /* a rank, or an auxiliary */
    struct dt_spawned spawned;
    bool alive;    /* not reaped */
    bool reported; /* EXIT is sent */
    bool injected; /* a fault has been meant to end it */
    int aborted;   /* by MPI_Abort with that code; 0: it has not called it */
    bool asked;    /* by SIGTERM, to end: of the newest STOP */
    struct dt_msg_exit end;
};

struct dt_generation {
    struct dt_agent_host *host;
    struct dt_msg_start start;
    struct dt_ranksock *sock;
    struct dt_pmisock *pmi;
    struct dt_pmixhelper *pmix;       /* NULL: the program needs none */
    char *needs_pmix;                 /* why it does */
    bool pmix_pending;                /* it is being started */
    bool fence_is_pmix;               /* the newest one; else PMI-1 */
    struct dt_strs mpi_env;           /* of ranks: where the PMIx server is */
    bool uses_horovod;                /* the program does, and was not left alone with it */
    struct dt_rendezvous *rendezvous; /* of Horovod; NULL: it is not needed, or not here */
    struct dt_relay *relay;
    struct dt_stdinfeed *in;
    struct dt_injector *faults;
    struct dt_spawn *spawn;
    struct dt_spawn_config config;
    enum dt_generation_phase phase;
    bool all_wait;                       /* at the gate */
    bool stopping;                       /* the launcher said STOP */
    bool stopped_at_once;                /* ... with no grace, or the grace is over */
    struct dt_msg_spawn_failed *failure; /* why no rank runs, or NULL */
    uv_timer_t timer;                    /* the grace, and the rounds of both sweeps */
    uint64_t grace_ends_ns;
    uint64_t sweep_ends_ns;
    uint32_t alive;
    struct dt_process *processes; /* as in config.numbers: the ranks, by local rank, come first */
};

/* For the user: dtrun prints it with the host's name. */
void dt_generation_log(struct dt_generation *g, const char *text);

#endif
