/* The world around the engine of one job: hosts with model agents and ranks, the network between
 * them and dtrun, and a witness that sees everything.
 *
 * network.c carries messages and implements the engine's ops. agent.c follows PROTOCOL.md. ranks.c
 * is the program, failed_calls.c its calls that fail by themselves, fences.c its barriers if it
 * uses MPI. faults.c breaks things. The judges look at what passes between the engine and the
 * world, never at the engine's own state: invariants.c (what the engine sends and closes), output.c
 * (what it shows), restarts.c (which restarts are allowed), quarantine.c (which hosts are left
 * out), rejoin.c (when lost hosts are tried again and used), reach.c (what follows if hosts do not
 * reach each other), decisions.c (when it decides),
 * stopping.c (how it ends ranks, and itself), recoveries.c (what it says of restarts), report.c
 * (the report), auxiliaries.c (when auxiliaries are ended), oracle.c (the exit code). */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <cjson/cJSON.h>

#include "launcher/job/job.h"
#include "tests/sim/scenario.h"

enum { SIM_STREAMS = 2, SIM_CAUSES_MAX = 128 };

enum sim_comm { SIM_WORLD, SIM_OTHER, SIM_COMMS }; /* communicators, each of all ranks */

struct sim_stream { /* only lengths are kept, since sim_stream_bytes gives the contents */
    uint64_t produced, sent, credit;
    uint64_t printed_ns; /* when the process last wrote */
    bool ended;
};

struct sim_rank { /* a process: a rank or an auxiliary */
    uint32_t rank;
    bool alive;
    bool stubborn;  /* neither ends nor reacts to SIGTERM */
    bool failed;    /* its calls on DT_WORLD have failed, and it is about to end */
    bool peer_lost; /* they have returned DT_ERR_PEER, or waited for too long */
    bool careless;  /* calls on the other communicator have failed, and it has not freed that */
    bool in_mpi;    /* it has called MPI_Init, but not MPI_Finalize */
    bool asked;     /* has been sent a signal that ends it */
    bool stopped;   /* by SIGSTOP */
    uint64_t began_ns;
    uint64_t works_ns; /* when it begins to work, with what it has restored */
    uint64_t next_ns;  /* when it will end by itself */
    uint64_t life;     /* raising it cancels the events planned for the process */
    struct sim_stream streams[SIM_STREAMS];
};

struct sim_reader {   /* of one of dtrun's own streams */
    uint64_t owed;    /* bytes that it has still to take */
    uint64_t read_ns; /* when it last took some */
    uint64_t owed_ns; /* when it last had none to take until then */
};

enum sim_phase { SIM_NOTHING, SIM_SPAWNING, SIM_READY, SIM_RUNNING, SIM_SWEEPING };

struct sim_agent {
    struct sim_agent *next; /* in the list of all agents */
    struct sim_agent *next_here;
    struct sim_host *host;
    struct sim_conn *conn;
    bool alive;
    enum sim_phase phase;
    uint32_t generation;
    uint32_t np, node, nodes;
    uint32_t fences, fenced; /* FENCE sent, FENCED arrived, in this generation */
    bool stopping;
    bool fenced_in_time; /* each message renewed the lease within half a second of its sending */
    bool refuses;        /* answers START with SPAWN_FAILED */
    struct sim_rank *ranks;
    uint32_t n, left; /* all processes; those alive */
    uint32_t nranks;  /* these come first, then auxiliaries */
    bool stdin_ended;
    uint32_t limit_ms;         /* the lowest that its ranks have set in this generation, or 0 */
    int32_t failed[SIM_COMMS]; /* why calls on the communicator fail on this host; 0: they work */
    uint64_t heard_ns, lease_ns;
    bool in_doubt;  /* its ranks are stopped, since others may run in their place */
    bool held;      /* its lease is suspended by Ctrl-Z */
    bool receiving; /* pushed files are on their way */
};

enum sim_side { SIM_TO_ENGINE, SIM_TO_AGENT };

struct sim_conn {
    struct sim_conn *next; /* in the list of all connections */
    struct sim_host *host;
    struct sim_agent *agent; /* NULL until one starts */
    bool open;               /* as the engine sees it */
    bool over;               /* the agent's side has ended */
    bool aside;              /* opened to see whether a lost host is back; ranks have not run yet */
    bool same;               /* ... which is the same machine as another one that is in use */
    bool ready;              /* all ranks of its last START are */
    uint64_t ended_ns;       /* when dtrun learnt of its end, or closed it */
    bool greeted, pushed;    /* the engine has HELLO; no push is left to do */
    bool dead[2];            /* by side: nothing arrives any more */
    bool given_up;           /* the engine has closed it */
    bool hung_up;            /* ... and knows that it has ended */
    bool cut;                /* the engine closed it because the job was ending */
    uint64_t last_ns[2][2];  /* arrival of the last message, by side and class */
    uint64_t most_ns;        /* the longest that a message has been under way */
    bool paused;             /* the last of SIGSTOP and SIGCONT that it was sent was SIGSTOP */
    bool pausing;            /* its last START came between SIGSTOP and SIGCONT */
    uint32_t started;        /* the generation whose START it was sent, until that ends; or 0 */
    uint32_t went;           /* the newest generation whose GO it was sent; or 0 */
    uint64_t sent_ns;        /* when anything was last sent to it */
    uint32_t round;          /* the last round of signals in which it was sent one */
    uint64_t signalled;      /* the set of signals that it was sent in that round */
    uint8_t batch[SIM_FAULTS_MAX]; /* signals of the batch system that the agent has reported, as
                                    * indices into the witness's */
    uint32_t reported, reports;    /* how many, and how many of these have reached dtrun */
    uint64_t pinged_ns;            /* when it was last sent PING */
    uint32_t queried, answered;    /* the last QUERY that it was sent, and that it has answered */
    uint64_t queried_ns, answered_ns;
    uint64_t awaited_ns;           /* when it was sent the first QUERY that it has not answered */
    uint64_t stopped;              /* when it was last sent STOP: the witness's count */
    uint32_t stop_grace;           /* in its last STOP; UINT32_MAX: no STOP yet */
    bool injected[SIM_INJECT_MAX]; /* its last START lists this fault */
    bool reads, stdin_ended; /* ranks here read standard input; they have been told of its end */
    uint64_t stdin_sent, stdin_taken; /* bytes, in this generation */
    uint64_t opened_ns, opened;       /* when the engine opened it: time, and the witness's count */
    uint64_t heard_ns;                /* when the engine last heard from it */
    uint64_t lost_ns;                 /* when it really ended, or 0 */
    uint32_t fenced;                  /* how often it was sent FENCED in this generation */
    uint64_t aborted;                 /* the number of the last failed call that it was told of */
};

struct sim_host {
    size_t index;
    char name[16], addrs[SIM_NETWORKS][24], identity[24];
    struct sim_conn *conn;    /* the newest */
    struct sim_agent *agents; /* every agent that has run here */
    uint64_t down_until, refuses_until, cut_until, frozen_until, slow_until;
    uint64_t cut_from;
    uint64_t clock_ns; /* how far its clock was ahead of the simulator's at the beginning */
    int64_t drift_ppm;
    bool spawn_fails;
    uint64_t orphans_ns; /* when anything was last sent to agents that were lost while their ranks
                            might run; 0: no such agent, or a later one has swept the host */
    bool lost;           /* a new connection has failed, or other hosts cannot reach it */
    bool back;           /* it was lost, an agent has answered there, and no ranks have run yet */
    bool due;            /* it is back, and has to get ranks before hosts that come after it */
    bool away;           /* dtrun has to say that it is not back */
    bool waiting;        /* it has to be tried again */
    bool put_off;        /* a restart came while it was tried: the next try needs no wait */
    uint32_t waits;      /* how often dtrun has begun to wait before a try */
    bool taken;          /* --inject has taken it away for good */
    bool left;           /* it shuts down or is stuck, and dtrun has said that it leaves it */
    bool second;         /* dtrun has said that it is another name of a host */
    uint64_t apart_until[SIM_HOSTS_MAX]; /* by host */
    uint64_t divided_until;
    bool divided_completely;
    uint8_t common; /* in that generation, the addresses at which all callers so far reach it */
    uint32_t generation; /* the last one whose START went to it */
    uint32_t node;       /* its number in that generation */
    uint32_t fences;     /* dtrun has got so many of its FENCEs there */
    bool apart;          /* in that generation, some host and this one could not reach each other */
    int spawn_code;
    uint64_t without; /* when dtrun said that the job continues without it, or waits; 0: not so */
    bool out;         /* in quarantine until then */
    uint64_t out_until_ns;
    uint32_t exiles; /* how often it has been there, at most */
};

struct sim_known { /* what dtrun knows of a rank in this generation */
    size_t host;
    bool met;               /* it has called dt_init */
    bool leaving;           /* a call has returned DT_ERR_PEER, as its agent has said */
    bool in_mpi, finalized; /* since the last call of MPI_Init, and of MPI_Finalize */
    bool ended;
    bool told; /* dtrun knows how it has ended: */
    int32_t code, signo;
    bool absent; /* it has exited with 0 before MPI_Finalize, or without MPI_Init */
};

struct sim_shown { /* a stream, as dtrun's user sees it */
    uint32_t generation;
    uint64_t bytes;
    bool ended;
};

enum sim_cause_kind {
    SIM_BY_SIGNAL,
    SIM_BY_LOSS,
    SIM_BY_DEPARTURE, /* of its host, which shuts down */
    SIM_BY_HANG,
    SIM_BY_EXIT,
    SIM_BY_LEAVING, /* with 0, and others wait for it */
    SIM_BY_MPI,     /* likewise, in MPI_Init or MPI_Finalize */
    SIM_BY_PEER,
    SIM_BY_REFUSAL
};

struct sim_cause { /* a failure of the generation that the engine was told of */
    enum sim_cause_kind kind;
    bool auxiliary;
    bool exited;             /* a process that ended by itself */
    size_t host;             /* where it began */
    int code;                /* the exit code that dtrun would have */
    uint64_t from_ns, to_ns; /* true time, as exactly as the engine can know it */
};

struct sim_restarts { /* restarts, as the witness counts them */
    uint32_t n;
    uint32_t fruitless;      /* restarts in a row without a newer checkpoint */
    bool barren;             /* enough of these that hosts may be quarantined */
    bool saved;              /* a checkpoint was saved or restored */
    bool restoring;          /* a restore has begun */
    bool committed;          /* a checkpoint was saved in this job */
    bool allowed;            /* what the rules said at the last decision */
    bool allowed_after_exit; /* the same if a process had ended by itself */
    bool met;                /* a rank has called dt_init */
    bool behind;             /* the last restore was of an older checkpoint than the newest */
    uint64_t again_ns;       /* when all ranks ran again after the last one; 0: they did not */
    int64_t newest;          /* the newest committed step, or -1 */
    int64_t newest_at_decision, newest_before; /* at the last decision, and at the one before */
};

enum { SIM_RECOVERIES_MAX = 64 };

struct sim_recovery { /* a restart that dtrun has announced */
    uint32_t generation;
    int64_t step; /* of the checkpoint from which it began, or -1 */
    uint64_t delay_ns;
    bool over; /* dtrun has said that the job has recovered */
};

struct sim_recoveries {
    struct sim_recovery v[SIM_RECOVERIES_MAX]; /* the first ones */
    uint32_t n;
    uint64_t began_ns; /* when dtrun said that it restarts the ranks */
    bool due;          /* the job has recovered, and dtrun is being told of it */
};

struct sim_batch { /* a signal of the batch system, sent to all agents */
    int signo;
    uint64_t sent_ns;
    bool heard;        /* dtrun has heard of it from an agent, and is about to act, or has acted */
    uint64_t acted_ns; /* or 0 */
};

struct sim_reach { /* what hosts say about the addresses of others, in this generation */
    bool all;      /* dtrun has to ask for all addresses, and has asked this many hosts */
    uint32_t asked;
    uint32_t answers; /* to the last question */
    bool cut;         /* some host does not reach another one at any address */
};

struct sim_missed { /* a rank of MPI that is absent while others are inside: the first one */
    bool any;
    uint32_t rank;
    uint64_t told_ns; /* when dtrun learnt that there was one */
};

struct sim_looks {            /* how often dtrun looks at its hosts */
    uint64_t due_ns;          /* the next look */
    uint64_t set, set_before; /* how often it has set the time; the same before the last LIMIT */
    uint32_t told_ms;         /* the last LIMIT, or 0 if that was of an old generation */
    uint32_t least_ms;        /* the lowest of all */
};

struct sim_failed_call { /* reported by an agent; dtrun tells the other agents at once */
    uint64_t number;
    bool pending; /* dtrun is being told of it */
    bool counts;  /* the ranks are starting or running, and nothing else has failed */
    uint64_t comm;
    uint32_t rank;
    int32_t code;
    char text[64];
};

enum { SIM_ORDERS_MAX = 8, SIM_SAID_MAX = 128 };

struct sim_order { /* something that ends a job by itself: a signal or a limit */
    uint64_t count, at_ns;
    uint64_t suspended_ns; /* as in the witness, until then */
    int signo;             /* or 0 */
    int code;
    bool late; /* counts even if all has gone well */
};

/* How often dtrun has said a line, by its hash. */
struct sim_said {
    uint64_t hash;
    uint32_t n;
};

/* Each note of the witness has a number ("count"), which orders notes of the same instant. */
struct sim_witness {
    uint64_t count;
    uint32_t generation; /* of the last START */
    struct sim_restarts restarts;
    struct sim_recoveries recoveries;
    struct sim_cause causes[SIM_CAUSES_MAX]; /* of this generation */
    size_t ncauses, decided_causes;
    uint32_t ended, ended_well; /* ranks */
    bool pardoned; /* auxiliaries had failed before dtrun learnt that all ranks had exited with 0 */
    uint64_t through_ns;           /* when dtrun learnt that */
    uint64_t through_suspended_ns; /* suspended_ns at that time */
    bool stopped_auxiliaries; /* dtrun has stopped the auxiliaries because only they were left */
    bool limit_over;          /* --timeout has passed */
    uint64_t first_end_ns;    /* when dtrun learnt that the first rank had exited with 0 */
    uint32_t ready;           /* hosts whose ranks all wait for GO, or have got it */
    uint32_t running;         /* hosts whose ranks all run */
    uint64_t all_run_ns;      /* when dtrun learnt that all of them do */
    uint32_t nodes;           /* hosts that were sent START */
    struct sim_reach reach;
    bool cut_off; /* before ranks run, the job must leave out stuck or unreachable hosts */
    uint64_t decided, decided_ns; /* when the engine first ended ranks after the last START */
    bool warned;                  /* dtrun has warned of ranks that still run */
    bool restarting;              /* dtrun has said that it restarts the ranks */
    bool graceful;                /* ... and they have time to save before */
    struct sim_conn *signalled;   /* dtrun hears of a signal that ends its host's processes */
    struct sim_host *stuck;       /* dtrun hears of killed processes that have not ended there */
    bool repeated;                /* ... after another one, or of a host that has no ranks */
    bool insisted;                /* the user has interrupted dtrun once more */
    bool drops_output;            /* ... after a signal had ended the job */
    bool dropped[SIM_STREAMS];    /* dtrun has said that nobody reads this output */
    struct sim_said said[SIM_SAID_MAX];
    uint64_t paused_ns;    /* Ctrl-Z was given then, and dtrun has not stopped yet; or 0 */
    uint64_t suspended_ns; /* for how long dtrun has been stopped */
    uint64_t finished;     /* the engine has shown that the job is over */
    bool lost_for_good;    /* when finished, a host that the job needed could not be used */
    struct sim_order orders[SIM_ORDERS_MAX];
    size_t norders;
    uint64_t ordered;      /* the count of the last order */
    uint64_t gathered;     /* set of signals of a batch system that dtrun is about to act on */
    uint64_t doubtful;     /* those of them that it may take for late reports of earlier ones */
    uint64_t acted_ns[64]; /* when it last acted on each signal, or 0 */
    struct sim_batch batch[SIM_FAULTS_MAX];
    uint32_t nbatch;
    uint32_t round;   /* the current round of signals, each of which ranks must get once */
    bool preempted;   /* a rank exited with 75 */
    bool lost_early;  /* a connection ended before the first START */
    uint64_t lost_ns; /* when dtrun last lost or closed a connection */
    uint32_t went;    /* the newest generation that was sent GO */
    bool lost_peer;   /* a call of some rank has returned DT_ERR_PEER */
    struct sim_missed missed;
    struct sim_looks looks;
    struct sim_failed_call failed_call;
    struct dt_msg_output_quiet quiet; /* dtrun is being told of it, unless fd is 0 */
    uint64_t blamed[3];    /* sets of hosts where the last failures may have begun, newest first */
    uint32_t recalled;     /* the generation after which hosts had to be used again too early */
    uint64_t retried;      /* when dtrun last tried lost hosts again */
    bool outage;           /* dtrun has waited for lost hosts since all ranks ran */
    bool program_at_fault; /* a rank fails wherever it runs, so no host is left out */
    bool said_behind;      /* dtrun has said that the ranks do not find the newest checkpoint */
    bool told_calls;       /* last calls of this generation have come */
    bool owes_calls;       /* ... and dtrun has to print them */
    bool world_failed;     /* calls on DT_WORLD have failed for good */
    bool other_failed;     /* calls on the other communicator have failed for good */
    size_t orders_before;  /* when --start-timeout was over */
    uint32_t late_in;      /* the generation then */
    bool late;             /* ... and a host that is back may not be ready */
    bool ignored;          /* a rank has exited with 0 without having freed that communicator */
};

struct sim_input { /* dtrun's standard input */
    uint64_t read; /* bytes read in total */
    uint64_t base; /* bytes read before this generation */
    uint64_t credit;
    bool ended;
    bool planned; /* a read is */
};

struct sim_hang { /* a linked rank that hangs while the others wait for it */
    uint32_t generation;
    uint32_t ended; /* the generation in which dtrun has given the rank up */
    uint64_t since_ns;
};

struct sim_world {
    const struct sim_scenario *s;
    bool trace;
    struct dt_hostlist list;
    struct dt_plan plan;
    struct dt_job_config config;
    struct dt_job_ops ops;
    struct dt_job *job;
    struct sim_queue queue;
    struct sim_chance network, program;
    uint64_t now_ns, began_ns;
    uint64_t events;
    uint64_t standing_until; /* dtrun stands still until then */
    uint64_t timer_epoch[DT_JOB_TIMERS];
    bool pausing; /* agents were told to stop their ranks, and dtrun has not continued yet */
    bool ended;
    struct sim_host *hosts;
    struct sim_agent *agents;
    struct sim_conn *conns;
    struct sim_shown (*shown)[SIM_STREAMS]; /* by rank */
    struct sim_known *known;                /* by rank */
    struct sim_input input;
    struct sim_hang hang;
    bool triggered[SIM_INJECT_MAX]; /* dtrun knows that this fault of --inject was triggered */
    struct sim_reader readers[SIM_STREAMS];
    uint32_t well_generation; /* of which `well` ranks have exited with 0 */
    uint32_t well;
    int64_t durable;           /* step of the newest checkpoint, or -1 */
    uint32_t owner;            /* the generation that saves; no earlier one can */
    uint32_t left_generation;  /* a rank of it has exited with 0 too early */
    uint32_t stuck_generation; /* its linked ranks wait for one that died or hangs */
    struct sim_witness witness;
    char broken[512]; /* the invariant that does not hold, or "" */
};

/* world.c */
/* Runs the scenario to its end. Returns whether all invariants held. If not, w->broken names one
 * that did not. */
bool sim_world_run(struct sim_world *w, const struct sim_scenario *s, bool trace);
void sim_world_free(struct sim_world *w);
void sim_later(struct sim_world *w, uint64_t ns, struct sim_event e);
void sim_trace(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_broken(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Time passes while dtrun does nothing. */
void sim_stand_still(struct sim_world *w, uint64_t ns);

/* network.c */
extern const struct dt_job_ops sim_ops;
void sim_send(struct sim_world *w, struct sim_agent *a, uint8_t type,
              union dt_msg *msg); /* frees msg */
/* The agent has got all pushed files. */
void sim_send_pushed(struct sim_world *w, struct sim_agent *a);
/* Sends the end of the connection: to dtrun, to the agent, or to both. */
void sim_conn_end(struct sim_world *w, struct sim_conn *c, const char *why);
void sim_conn_hang_up(struct sim_world *w, struct sim_conn *c);
void sim_conn_break(struct sim_world *w, struct sim_conn *c);

/* agent.c */
struct sim_agent *sim_agent_new(struct sim_world *w, struct sim_conn *c);
/* Returns whether the agent whose event it is can act. While its host stands still it cannot; then
 * the event comes again later. */
bool sim_agent_acts(struct sim_world *w, struct sim_event *e);
void sim_agent_hear(struct sim_world *w, struct sim_event *e);
void sim_agent_hung_up(struct sim_world *w, struct sim_agent *a);
void sim_agent_die(struct sim_world *w, struct sim_agent *a); /* at once, with its ranks */
uint64_t sim_host_clock(const struct sim_world *w, const struct sim_host *h);
bool sim_agent_is_fenced(const struct sim_world *w, const struct sim_agent *a);
/* A process has ended, with an exit code or by a signal. */
void sim_agent_reap(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int code,
                    int signo);
void sim_agent_flush(struct sim_world *w, struct sim_agent *a);
/* The process writes n bytes. */
void sim_agent_print(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int fd,
                     uint64_t n);
void sim_agent_repeat(struct sim_world *w, struct sim_agent *a); /* of the generation before */

/* ranks.c */
void sim_ranks_begin(struct sim_world *w, struct sim_agent *a);
void sim_ranks_meet(struct sim_world *w, struct sim_agent *a); /* called when TABLE has come */
/* Calls on DT_WORLD fail on this host, unless they have failed already. */
void sim_ranks_abort(struct sim_world *w, struct sim_agent *a, int32_t code);
void sim_rank_signal(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int signo);
void sim_rank_fail(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int code,
                   int signo);
int64_t sim_rank_step(const struct sim_world *w, const struct sim_rank *r);
struct sim_rank *sim_rank_find(struct sim_world *w, uint32_t rank, struct sim_agent **a);
/* The n bytes that the process prints from this position on. */
void sim_stream_bytes(char *out, uint64_t from, size_t n, uint32_t generation, uint32_t rank,
                      int fd);

bool sim_is_line_unfinished(uint64_t bytes); /* after so many bytes of a stream */

/* Plans what the agent's process does after this time, unless it has ended by then. */
void sim_plan(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r, uint64_t ns,
              sim_action_f act, int what);
/* The process whose event it is. Returns NULL if that has ended, or if it stands still; then the
 * event comes again later. */
struct sim_rank *sim_acting_process(struct sim_world *w, struct sim_event *e);

/* auxiliaries.c */
bool sim_is_auxiliary(const struct sim_world *w, uint32_t number);
void sim_auxiliary_begins(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r);
void sim_auxiliaries_rank_ended(struct sim_world *w, uint32_t generation); /* a rank exits with 0 */
/* dtrun knows that all ranks have exited with 0, there are auxiliaries, and it has not begun to end
 * the generation. */
bool sim_are_ranks_through(const struct sim_world *w);
/* dtrun learns that a rank has exited with 0. */
void sim_auxiliaries_pardon(struct sim_world *w);
/* Called when the engine sends STOP. Returns whether only auxiliaries are left to be ended. */
bool sim_check_auxiliaries_stopped(struct sim_world *w);

/* faults.c */
void sim_faults_plan(struct sim_world *w);

/* invariants.c */
void sim_check_sent(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m);
void sim_check_told(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m);
/* The engine has handled a message. */
void sim_check_handled(struct sim_world *w, struct sim_conn *c, uint8_t type);
void sim_check_closed(struct sim_world *w, struct sim_conn *c); /* the engine closes it */
void sim_check_fence(struct sim_world *w, uint64_t until_ns);   /* the engine sets DT_TIMER_FENCE */
void sim_check_lost(struct sim_world *w, struct sim_conn *c);
void sim_check_said(struct sim_world *w, const char *line);
void sim_check_end(struct sim_world *w);

/* output.c */
void sim_check_output(struct sim_world *w, uint32_t rank, int fd, const char *data, size_t n);
/* The engine gets OUTPUT_QUIET, says that the stream is quiet, and has handled the message. */
void sim_check_quiet_told(struct sim_world *w, const struct dt_msg_output_quiet *m);
void sim_check_output_quiet(struct sim_world *w, uint32_t rank, int fd);
void sim_check_quiet_shown(struct sim_world *w);
void sim_check_output_eof(struct sim_world *w, uint32_t rank, int fd);
/* Returns for how long the stream's reader has taken none of the bytes that it has to take. */
uint64_t sim_unread_ns(const struct sim_world *w, int fd);
bool sim_has_dropped(const struct sim_world *w); /* dtrun has said that it drops output */
void sim_check_all_read(struct sim_world *w);    /* dtrun ends */
/* dtrun says that it drops output, or that hosts are silent. */
void sim_check_output_said(struct sim_world *w, const char *line);
/* A host is done with the generation, so its ranks' output must have been shown as a whole, unless
 * dtrun has dropped some. */
void sim_check_streams_whole(struct sim_world *w, const struct sim_agent *a);
/* The streams of the agent's ranks must have ended, even those that were cut short. */
void sim_check_streams_ended(struct sim_world *w, const struct sim_agent *a);

/* input.c */
void sim_stdin_credit(void *arg, size_t n); /* callbacks in struct dt_job_ops */
void sim_stdin_hold(void *arg);
void sim_stdin_started(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m);
void sim_check_stdin(struct sim_world *w, struct sim_conn *c, const struct dt_msg_stdin *m);
void sim_check_stdin_eof(struct sim_world *w, struct sim_conn *c);
void sim_agent_on_stdin(struct sim_world *w, struct sim_agent *a, const struct dt_msg_stdin *m);
void sim_agent_on_stdin_eof(struct sim_agent *a, const struct dt_msg_stdin_eof *m);
/* Whether the rank reads standard input to its end before it exits. */
bool sim_rank_awaits_stdin(const struct sim_world *w, const struct sim_agent *a,
                           const struct sim_rank *r);

/* hangs.c */
void sim_rank_hangs(struct sim_world *w, struct sim_agent *a, struct sim_rank *r);
void sim_agent_tell_waits(struct sim_world *w, const struct sim_agent *a, struct dt_msg_pong *pong);
void sim_check_abort(struct sim_world *w, const struct dt_msg_abort *m);
void sim_rank_sets_limits(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r);
void sim_agent_tell_limit(struct sim_world *w, struct sim_agent *a, uint32_t generation,
                          uint32_t ms);
void sim_check_tick(struct sim_world *w, uint64_t ms); /* the engine sets DT_TIMER_TICK */
void sim_check_limit_told(struct sim_world *w, const struct dt_msg_limit *m);
void sim_check_limit_handled(struct sim_world *w);

/* failed_calls.c */
void sim_call_fails(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r,
                    int32_t code, enum sim_comm comm);
void sim_agent_on_abort(struct sim_world *w, struct sim_agent *a, const struct dt_msg_abort *m);
void sim_check_failed(struct sim_world *w, const struct dt_msg_failed *m);
/* Called when the engine sends ABORT. Returns whether it passes on a failed call. */
bool sim_check_passed_on(struct sim_world *w, struct sim_conn *c, const struct dt_msg_abort *m);
void sim_check_all_passed_on(struct sim_world *w); /* the engine has handled FAILED */
/* Whether all ranks have exited with 0 although a call had failed for good. */
bool sim_are_errors_ignored(const struct sim_world *w);

/* The rank's calls have failed: it may tell its last ones before it ends. */
void sim_rank_tells_last_calls(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r);
void sim_agent_tell_last_calls(struct sim_world *w, struct sim_agent *a, uint32_t rank,
                               uint32_t generation, int32_t code);
void sim_check_last_calls_told(struct sim_world *w, const struct dt_msg_last_calls *m);
void sim_check_last_calls_said(struct sim_world *w, const char *line);
void sim_check_last_calls_complete(struct sim_world *w); /* the generation or the job is over */

/* fences.c */
void sim_rank_plans_mpi(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r);
void sim_rank_tells_mpi_state(struct sim_world *w, struct sim_agent *a, struct sim_rank *r,
                              bool inside);
void sim_fences_begin(struct sim_world *w, struct sim_agent *a);
void sim_agent_on_fenced(struct sim_world *w, struct sim_agent *a, const struct dt_msg_fenced *m);
/* Whether the agent's ranks have a barrier to come before they exit. */
bool sim_agent_awaits_fence(const struct sim_world *w, const struct sim_agent *a);
void sim_check_fence_told(struct sim_world *w, struct sim_conn *c, const struct dt_msg_fence *m);
void sim_check_fenced(struct sim_world *w, struct sim_conn *c, const struct dt_msg_fenced *m);
void sim_check_fence_passed_on(struct sim_world *w); /* the engine has handled FENCE */

/* quarantine.c */
void sim_defects_begin(struct sim_world *w, struct sim_agent *a);
void sim_check_quarantine_said(struct sim_world *w, const char *line);
void sim_check_quarantine_over(struct sim_world *w); /* ranks are about to start again */
/* START goes there. */
void sim_check_quarantine_kept(struct sim_world *w, struct sim_host *h);

/* inject.c */
void sim_check_injections(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m);
void sim_check_triggered(struct sim_world *w, const char *fault);
void sim_check_injected_loss(struct sim_world *w, struct sim_conn *c);
void sim_agent_inject(struct sim_world *w, struct sim_agent *a);

/* reach.c */
void sim_agent_on_probe(struct sim_world *w, struct sim_agent *a, const struct dt_msg_probe *m);
void sim_reach_started(struct sim_world *w); /* a new generation */
void sim_check_probe(struct sim_world *w, struct sim_conn *c, const struct dt_msg_probe *m);
void sim_check_reach(struct sim_world *w, struct sim_conn *c, const struct dt_msg_reach *m);
void sim_check_reach_handled(struct sim_world *w);

/* stopping.c */
void sim_check_stop(struct sim_world *w, struct sim_conn *c, const struct dt_msg_stop *m);
void sim_stopping_ordered(struct sim_world *w); /* something has just ended the job */
bool sim_is_insisting(const struct sim_world *w, int signo);
/* Whether dtrun may drop output even if some is being read. */
bool sim_is_reader_late(const struct sim_world *w);
void sim_check_insisted(struct sim_world *w);  /* dtrun has handled that signal */
void sim_check_left(struct sim_world *w);      /* dtrun has handled the end of a connection */
void sim_check_suspended(struct sim_world *w); /* dtrun is about to stop itself */

/* decisions.c */
void sim_check_query(struct sim_world *w, struct sim_conn *c, const struct dt_msg_query *m);
void sim_check_answer(struct sim_world *w, struct sim_conn *c, const struct dt_msg_answer *m);
void sim_check_decided(struct sim_world *w);

/* recoveries.c */
void sim_recovery_planned(struct sim_world *w, int64_t step, uint64_t delay_ns);
void sim_recovery_put_off(struct sim_world *w);
void sim_recovery_told(struct sim_world *w, const struct dt_msg_commit *m);
void sim_recovery_all_run(struct sim_world *w); /* called when a host's ranks run */
void sim_check_recovery_said(struct sim_world *w, const char *line);
void sim_check_recovery_handled(struct sim_world *w); /* the engine has handled that message */
void sim_check_recoveries(struct sim_world *w, const cJSON *report);

/* report.c */
void sim_check_report(struct sim_world *w); /* at the end */

/* signals.c */
bool sim_ends_jobs(int signo);
void sim_signal(struct sim_world *w, int signo); /* dtrun gets it */
/* The next signal that dtrun hears of from this agent. */
int sim_signal_reported(const struct sim_world *w, const struct sim_conn *c);
/* dtrun has heard of it. for_host: it concerns only that host. */
void sim_reported(struct sim_world *w, struct sim_conn *c, bool for_host);
void sim_signal_gathered(struct sim_world *w);
void sim_check_signal(struct sim_world *w, struct sim_conn *c, int signo);
/* Whether a batch system has sent a signal that ends jobs, and dtrun still waits for others like
 * it. */
bool sim_is_about_to_end(const struct sim_world *w);
void sim_batch_signal(struct sim_world *w, int signo, bool to_dtrun);
void sim_host_signal(struct sim_world *w, struct sim_host *h, int signo, bool to_ranks);

/* departures.c */
void sim_check_signalled(struct sim_world *w, struct sim_conn *c); /* the engine hears of it next */
void sim_check_departure_said(struct sim_world *w, const char *line);
void sim_check_one_machine_said(struct sim_world *w, const char *line);
void sim_check_departure(struct sim_world *w); /* dtrun says that it restarts the ranks */
void sim_check_signalled_handled(struct sim_world *w, struct sim_conn *c);
/* Whether other hosts that dtrun certainly counts on can take all ranks. */
bool sim_is_room_elsewhere(const struct sim_world *w, const struct sim_host *h);
/* Killed processes do not end on this host, or it is back and cannot start ranks. Returns whether
 * the job must go on without it; then the engine hears of them next. */
bool sim_must_leave_stuck(struct sim_world *w, const struct sim_conn *c);
void sim_check_stuck_handled(struct sim_world *w);

/* rejoin.c */
/* dtrun is connected to it, and not only to see whether it is back. */
bool sim_is_connected(const struct sim_host *h);
void sim_rejoin_watch(struct sim_world *w); /* all ranks run, or a connection has ended */
/* The engine opens a connection. Returns whether that is to see whether the host is back. */
bool sim_check_opened_aside(struct sim_world *w, struct sim_host *h);
/* Whether the job already uses the machine under another name. */
bool sim_is_same_machine(const struct sim_world *w, const struct sim_conn *c);
void sim_rejoin_ready(struct sim_world *w, struct sim_conn *c); /* the engine is being told */
void sim_rejoin_ended(struct sim_world *w, struct sim_conn *c); /* likewise */
void sim_check_back_said(struct sim_world *w, const char *line);
void sim_expect_away_said(struct sim_world *w); /* dtrun restarts the ranks */
void sim_check_away_said(struct sim_world *w, const char *line);
void sim_rejoin_started(struct sim_world *w);  /* a new generation is about to start */
void sim_check_back_used(struct sim_world *w); /* START was sent to all hosts that get ranks */
void sim_rejoin_runs(struct sim_world *w, struct sim_conn *c); /* the host's ranks run */
/* --start-timeout is over. Returns whether hosts that are back may have to be left for that. */
bool sim_rejoin_is_late(struct sim_world *w);
void sim_check_late_said(struct sim_world *w, const char *line);
void sim_check_late_handled(struct sim_world *w); /* the engine has handled that timer */
void sim_check_not_awaited(struct sim_world *w);  /* the engine has handled DONE */

/* restarts.c */
bool sim_is_restart_allowed(const struct sim_world *w); /* unless a rank exits by itself */
void sim_restarts_decided(struct sim_world *w);
void sim_restarts_started(struct sim_world *w);            /* a new generation */
uint64_t sim_restarts_delay_ns(const struct sim_world *w); /* how long the next one must wait */
/* Ranks must not restart before this time. */
uint64_t sim_restarts_due_ns(const struct sim_world *w);

/* oracle.c */
void sim_oracle_started(struct sim_world *w, uint32_t generation);
void sim_oracle_decided(struct sim_world *w);
void sim_oracle_finished(struct sim_world *w);
void sim_check_outage(struct sim_world *w);     /* the engine sets DT_TIMER_OUTAGE */
void sim_oracle_try_again(struct sim_world *w); /* that timer expires */
void sim_oracle_order(struct sim_world *w, struct sim_order order);
void sim_oracle_exit(struct sim_world *w, const struct sim_conn *c, const struct dt_msg_exit *m);
void sim_oracle_lost(struct sim_world *w, const struct sim_conn *c);
void sim_oracle_hang(struct sim_world *w, const struct sim_host *h);
void sim_oracle_departure(struct sim_world *w, const struct sim_host *h);
void sim_oracle_refusal(struct sim_world *w, int code);
bool sim_has_refusal(const struct sim_witness *x);
void sim_oracle_mpi_state(struct sim_world *w, const struct dt_msg_mpi_state *m);
void sim_check_warned(struct sim_world *w, const char *line);
/* DT_TIMER_MISSED is over: ranks of MPI that are absent have failed. */
void sim_oracle_missed(struct sim_world *w);
void sim_oracle_suspended(struct sim_world *w, uint64_t ns); /* for so long */
/* Whether --exit-grace is over while ranks still run and nothing else ends them. */
bool sim_is_exit_grace_over(const struct sim_world *w);
/* The set of hosts where the failure that was decided on may have begun. */
uint64_t sim_oracle_blamed(const struct sim_world *w);
/* Whether a failure that was decided on may have been the first one, and has to restart the job;
 * without restart: has to end it. */
bool sim_oracle_allows(const struct sim_world *w, bool restart);
/* Whether it has never had ranks, and the host before it is the same machine. */
bool sim_is_second_name(const struct sim_world *w, const struct sim_host *h);
/* Whether the rules of dtrun(1) allow this exit code. */
bool sim_oracle_accepts(const struct sim_world *w, int code, char *expected, size_t size);

#endif
