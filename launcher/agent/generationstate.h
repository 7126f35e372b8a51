/* The state of the ranks of one START. Several files work on it: generation.c (their start, and
 * what the launcher sends), ending.c (signals, and their end), resources.c (devices, CPUs and
 * limits), mpirequests.c (requests of their MPI), horovodserve.c (their Horovod), unservedwarn.c
 * (frameworks that were not recognised) and deaths.c (how they ended). */
#ifndef DT_AGENT_GENERATIONSTATE_H
#define DT_AGENT_GENERATIONSTATE_H

#include "launcher/agent/generation.h"
#include "launcher/agent/horovod/rendezvous.h"
#include "launcher/agent/io/relay.h"
#include "launcher/agent/io/stdinfeed.h"
#include "launcher/agent/mpi/pmixhelper.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "launcher/agent/ranks/injector.h"
#include "launcher/agent/ranks/spawn.h"
#include "launcher/agent/sweep/groupsignal.h"
#include "launcher/agent/unserved/procscan.h"

/* In this order. A failed spawn goes from the first directly to DT_GENERATION_SWEEPING. */
enum dt_generation_phase {
    /* The agent kills leftovers of earlier generations, then forks the processes. Some have not
     * executed the program yet, so deaths are held back. */
    DT_GENERATION_SPAWNING,
    DT_GENERATION_RUNNING,
    /* All processes are reaped, or stuck; those that they left behind are being killed. */
    DT_GENERATION_SWEEPING,
    DT_GENERATION_FLUSHING, /* no process is left; their output is being sent */
    DT_GENERATION_OVER,
};

struct dt_process { /* a rank or an auxiliary */
    struct dt_spawned spawned;
    bool alive;          /* not reaped, or outlived */
    bool reported;       /* EXIT was sent */
    bool injected;       /* an injected fault was meant to end it */
    int aborted;         /* the code that it passed to MPI_Abort; 0: it has not called it */
    uint64_t aborted_ns; /* when the agent heard of that */
    bool mpi_done;       /* it has called MPI_Finalize */
    bool asked;          /* STOP has sent it SIGTERM, or Slurm has */
    siginfo_t outlived;  /* how it ended, while others of its group have a grace; si_pid 0: not */
    struct dt_msg_exit end;
};

struct dt_generation {
    struct dt_agent_host *host;
    struct dt_msg_start start;
    struct dt_ranksock *sock;
    struct dt_pmisock *pmi;
    struct dt_pmixhelper *pmix;       /* NULL: the program needs no PMIx server */
    char *needs_pmix;                 /* why it needs one */
    bool pmix_pending;                /* the server is being started */
    bool fence_is_pmix;               /* the newest fence came from PMIx; false: from PMI-1 */
    struct dt_strs mpi_env;           /* for the ranks: the address of the PMIx server */
    bool uses_horovod;                /* on the first host: the program does */
    bool serves_horovod;              /* and the user did not choose its controller */
    struct dt_rendezvous *rendezvous; /* Horovod's; NULL: not needed, or on another host */
    struct dt_procscan *procscan;     /* NULL: nothing is looked for */
    struct dt_relay *relay;
    struct dt_stdinfeed *in;
    struct dt_injector *faults;
    struct dt_look *look; /* for leftovers of earlier generations; NULL: none is under way */
    struct dt_spawn *spawn;
    struct dt_spawn_config config;
    enum dt_generation_phase phase;
    bool all_wait;                       /* all processes wait at the gate */
    bool stop_expected;                  /* the agent was sent SIGTERM */
    bool stopping;                       /* the launcher said STOP */
    bool stopped_at_once;                /* STOP had no grace period, or it is over */
    struct dt_msg_spawn_failed *failure; /* why no rank runs, or NULL */
    uv_timer_t timer;                    /* the end of the grace period, or the next round */
    uint64_t grace_ends_ns;              /* 0: there was no grace period */
    uint64_t leave_by_ns;                /* when stuck ranks leave, within the grace period */
    uint64_t held_ns;                    /* when the ranks were stopped for Ctrl-Z; 0: they run */
    uint64_t orphans_end_ns;
    uint64_t sweep_ends_ns;
    uint32_t alive;
    /* In the order of config.numbers: the ranks by local rank, then auxiliaries. */
    struct dt_process *processes;
    struct dt_groupsignal_workers spared; /* workers that have not got SIGTERM */
};

/* Sends a line to dtrun, which prints it with the host's name. */
void dt_generation_say(struct dt_generation *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same as an event. arg: the struct dt_generation. */
void dt_generation_on_log(void *arg, const char *text);

#endif
