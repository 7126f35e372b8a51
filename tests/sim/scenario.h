/* What a seed determines: dtrun's options, the program, the hosts, and the faults. */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdio.h>

#include "tests/sim/clock.h"

enum sim_fault_kind {
    SIM_RANK_KILLED,   /* by the signal "code" */
    SIM_RANK_EXITS,    /* with status "code"; 0: without dt_finalize, or without MPI_Init or
                          MPI_Finalize, in which other ranks wait for it */
    SIM_CALL_FAILS,    /* a collective of the rank fails by itself with "code", on DT_WORLD or, if
                          "ns" is odd, on another communicator of all ranks */
    SIM_RANK_HANGS,    /* until SIGKILL */
    SIM_AGENT_DIES,    /* with its ranks, and its connection ends */
    SIM_HOST_VANISHES, /* at once, and accepts new connections after "ns" */
    SIM_LINK_BREAKS,   /* and both sides see it */
    SIM_DTRUN_LOSES, /* dtrun sees the connection end, the agent only silence. If "code" is set, the
                        host also refuses new connections for "ns" */
    SIM_AGENT_LOSES, /* the agent sees the connection end, dtrun only silence */
    SIM_LINK_DIES, /* nothing reaches dtrun any more, and "code" ms later nothing arrives at all */
    SIM_CUT_OFF,   /* messages wait for "ns" */
    SIM_HOST_FREEZES, /* agent and ranks stand still for "ns" */
    SIM_LINK_SLOW,    /* messages take 200 ms more, for "ns" */
    SIM_SPAWN_FAILS,  /* at the next START there; "code" says how (enum sim_spawn_failure) */
    SIM_STALE,        /* the agent repeats messages of the previous generation */
    SIM_DTRUN_STANDS, /* for "ns" */
    SIM_HOSTS_APART,  /* the host and the one "code" after it do not reach each other for "ns" */
    SIM_HOST_DIVIDED, /* hosts with odd numbers do not reach the host in its first network for "ns";
                         if "code" is set, the others do not reach it in its second one */
    SIM_CHECKPOINTS_LOST, /* the newest ones, or all if "code" is set */
    SIM_OUTPUT_FAILS,     /* writing standard output fails with errno "code" */
    SIM_BATCH_SIGNAL,     /* signal "code" to agents and ranks; also to dtrun if "ns" is odd */
    SIM_SIGNAL,           /* signal "code" to dtrun */
    SIM_HOST_ENDS, /* signal "code" to the agent and, if "ns" is odd, to its ranks, as when the host
                      shuts down */
    SIM_FAULT_KINDS,
};

enum sim_spawn_failure {
    SIM_NO_MEMORY = 1,
    SIM_NOT_FOUND,
    SIM_NOT_ALLOWED,
    SIM_STUCK, /* at each restart: killed processes wait inside the kernel */
    SIM_ALIVE, /* at each restart: a process cannot be killed */
};

enum {
    SIM_INJECT_MAX = 3,
    SIM_FAULTS_MAX = 10,
    SIM_HOSTS_MAX = 8,
    SIM_NETWORKS = 2,
    SIM_ROUNDS = 10
};

struct sim_fault {
    enum sim_fault_kind kind;
    uint64_t at_ns;      /* since the start of the job */
    uint64_t ns;         /* UINT64_MAX: for ever */
    uint32_t host, rank; /* numbers from np on are auxiliaries */
    int code;
};

enum sim_defect { SIM_NO_DEFECT, SIM_DEFECT_OF_HOST, SIM_DEFECT_OF_RANK };

struct sim_scenario {
    uint64_t seed;
    uint32_t hosts, np;
    int servers;              /* 0: no auxiliaries; else there is a scheduler, too */
    int slots[SIM_HOSTS_MAX]; /* of host i: slots[i % SIM_HOSTS_MAX] */
    int fanout, max_restarts, heartbeat_s, kill_grace_s, timeout_s, start_timeout_s;
    int exit_grace_s, collective_timeout_s;
    uint32_t rejoin_s;
    uint32_t call_limit_ms; /* the program's own for calls in which ranks wait for one that hangs */
    uint32_t limit_ms;      /* the lowest that the program sets for its own calls, or 0 */
    bool checkpoint_dir, stop_on_loss, no_oversubscribe, resume, fresh;
    bool terminal;                     /* a person reads what dtrun says */
    uint64_t spawn_ns;                 /* the longest that ranks take to be ready on a host */
    uint64_t push_ns;                  /* how long --push takes on a host */
    bool forgets;                      /* the program does not call dt_finalize */
    bool batch;                        /* a batch system may signal dtrun and agents alike */
    bool linked;                       /* the program calls dt_init */
    uint32_t fences;                   /* barriers of an MPI program, which is not linked */
    enum sim_defect defect;            /* until this many generations have begun: */
    uint32_t defective, defect_starts; /* the first rank on this host is killed; this rank exits */
    uint32_t twin;       /* this host is another name of the one before it; 0: there is none */
    uint64_t work_ns;    /* how long the program runs */
    uint64_t commit_ns;  /* between two checkpoints; 0: no checkpoints */
    bool restores;       /* the program restores when it begins */
    uint64_t restore_ns; /* how long that takes */
    uint32_t lines;      /* about how many each rank prints */
    bool floods;         /* many lines at the same time, so that credit runs out */
    int stdin_rank;      /* as in struct dt_job_config */
    uint64_t stdin_bytes;
    uint64_t stdin_ms;     /* the longest time between two pieces of standard input */
    uint64_t reader_ns[2]; /* by stream: when its output is first read; 0: at once */
    uint64_t latency_ns[SIM_HOSTS_MAX];
    char inject[SIM_INJECT_MAX][64]; /* as given to --inject */
    uint32_t ninject;
    struct sim_fault faults[SIM_FAULTS_MAX];
    uint32_t nfaults;
};

void sim_scenario_make(struct sim_scenario *s, uint64_t seed);
/* A job of 8 ranks on each of this many hosts. One rank in a hundred is killed, in SIM_ROUNDS
 * rounds. */
void sim_scenario_make_large(struct sim_scenario *s, uint32_t hosts);
/* Whether hosts with so many slots can take all ranks. */
bool sim_suffice(const struct sim_scenario *s, uint32_t slots);
void sim_scenario_print(const struct sim_scenario *s, FILE *out);
void sim_fault_print(const struct sim_fault *f, FILE *out);

#endif
