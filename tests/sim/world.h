/* The world around the engine of one job: hosts with model agents and ranks, the network between
 * them and dtrun, and a witness that sees everything.
 *
 * network.c carries messages and implements the engine's ops; agent.c follows PROTOCOL.md; ranks.c
 * is the program; faults.c breaks things. The judges read what passes between the engine and the
 * world, never the engine's own state: invariants.c (what the engine sends and closes), output.c
 * (what it shows), restarts.c (which restarts are allowed), auxiliaries.c (when these are ended),
 * oracle.c (the exit code). */
#ifndef DT_SIM_WORLD_H
#define DT_SIM_WORLD_H

#include "launcher/job/job.h"
#include "tests/sim/scenario.h"

enum { SIM_STREAMS = 2, SIM_CAUSES_MAX = 128 };

struct sim_stream { /* only lengths are kept: sim_stream_bytes knows the contents */
    uint64_t produced, sent, credit;
    bool ended;
};

struct sim_rank { /* a process: a rank or an auxiliary */
    uint32_t rank;
    bool alive;
    bool stubborn;  /* it hangs: neither ends nor reacts to SIGTERM */
    bool peer_lost; /* one of its calls has returned DT_ERR_PEER */
    bool asked;     /* it was sent a signal that ends it */
    bool stopped;   /* by SIGSTOP */
    uint64_t began_ns;
    uint64_t next_ns; /* when it would end by itself */
    uint64_t life;    /* raising it cancels the events planned for the process */
    struct sim_stream streams[SIM_STREAMS];
};

enum sim_phase { SIM_NOTHING, SIM_SPAWNING, SIM_READY, SIM_RUNNING, SIM_SWEEPING };

struct sim_agent {
    struct sim_agent *next; /* of all */
    struct sim_agent *next_here;
    struct sim_host *host;
    struct sim_conn *conn;
    bool alive;
    enum sim_phase phase;
    uint32_t generation;
    uint32_t np;
    bool stopping;
    bool fenced_in_time; /* every message has renewed the lease within half a second of its sending
                          */
    bool refuses;        /* START ends with SPAWN_FAILED */
    struct sim_rank *ranks;
    uint32_t n, left; /* processes; those alive */
    uint32_t nranks;  /* the first ones; auxiliaries come after them */
    bool stdin_ended;
    uint64_t heard_ns, lease_ns;
    bool in_doubt; /* its ranks are stopped, because others may run in their place */
    bool held;     /* Ctrl-Z has suspended its lease */
};

enum sim_side { SIM_TO_ENGINE, SIM_TO_AGENT };

struct sim_conn {
    struct sim_conn *next; /* of all */
    struct sim_host *host;
    struct sim_agent *agent; /* NULL: none has been started yet */
    bool open;               /* as the engine sees it */
    bool over;               /* the agent's side has ended */
    bool greeted, received;  /* the engine has HELLO; nothing is left to push */
    bool dead[2];            /* by side: nothing arrives any more */
    bool given_up;           /* the engine has closed it */
    bool cut;                /* ... because the job was to end */
    uint64_t last_ns[2][2];  /* arrival of the last message, by side and class */
    uint64_t most_ns;        /* the longest that a message has been under way */
    bool pausing;            /* its last START came between SIGSTOP and SIGCONT */
    uint32_t started;        /* generation that it was sent START of and has not ended; or 0 */
    uint32_t went;           /* generation that it was sent GO of last; or 0 */
    uint64_t sent_ns;        /* when it was sent anything last */
    uint32_t round;          /* the last round of signals in which it was sent one, */
    uint64_t signalled;      /* and those of it, as a set */
    uint64_t stopped_ns;     /* when it was sent STOP last */
    uint32_t stop_grace;     /* of its last STOP; UINT32_MAX: none */
    bool injected[SIM_INJECT_MAX]; /* its last START lists that fault */
    bool reads, stdin_ended;       /* ranks here read standard input; they were told of its end */
    uint64_t stdin_sent, stdin_taken; /* bytes, in this generation */
    uint64_t opened_ns, opened; /* when the engine opened it: the time, and the witness's count */
    uint64_t heard_ns;          /* when the engine last heard something through it */
    uint64_t lost_ns;           /* when it really ended, or 0 */
};

struct sim_host {
    size_t index;
    char name[16], addr[24], identity[24];
    struct sim_conn *conn;    /* the newest */
    struct sim_agent *agents; /* all that have been here */
    uint64_t down_until, refuses_until, cut_until, frozen_until, slow_until;
    uint64_t cut_from;
    uint64_t clock_ns; /* its clock minus the simulator's, at the beginning */
    int64_t drift_ppm;
    bool spawn_fails;
    uint64_t orphans_ns; /* when anything was sent last to agents that were lost while their ranks
                          * might run; 0: none, or another agent has swept the host */
    bool lost;           /* it could not be connected to again, or others do not reach it */
    uint64_t apart_until[SIM_HOSTS_MAX]; /* by host */
    uint32_t generation;                 /* of the last START that went to it */
    uint32_t node;                       /* its number in that generation */
    bool apart; /* in that generation there was a host that it did not reach, or that did
                 * not reach it */
    int spawn_code;
};

struct sim_shown { /* a stream, as the engine's user sees it */
    uint32_t generation;
    uint64_t bytes;
    bool ended;
};

enum sim_cause_kind {
    SIM_BY_SIGNAL,
    SIM_BY_LOSS,
    SIM_BY_HANG,
    SIM_BY_EXIT,
    SIM_BY_PEER,
    SIM_BY_REFUSAL
};

struct sim_cause { /* a failure of the generation, of which the engine was told */
    enum sim_cause_kind kind;
    bool auxiliary;
    int code;                /* what dtrun would exit with */
    uint64_t from_ns, to_ns; /* true time, as exactly as the engine can know it */
};

struct sim_restarts { /* counted by the witness itself */
    uint32_t n;
    uint32_t fruitless; /* consecutive restarts with no newer checkpoint in between */
    bool barren;        /* enough fruitless restarts that hosts may be quarantined */
    bool saved;         /* there was a checkpoint, or one was restored */
    bool met;           /* a rank has called dt_init */
    int64_t newest;     /* committed step, or -1 */
    int64_t newest_at_decision, newest_before; /* at this decision; at the one before */
};

enum { SIM_ORDERS_MAX = 8 };

struct sim_order { /* what ends a job by itself: a signal or a limit */
    uint64_t count, at_ns;
    int signo; /* or 0 */
    int code;
    bool late; /* it counts also when all has gone well */
};

/* Each note of the witness has a number ("count"), which orders notes of the same instant. */
struct sim_witness {
    uint64_t count;
    uint32_t generation; /* of the last START */
    struct sim_restarts restarts;
    struct sim_cause causes[SIM_CAUSES_MAX]; /* of this generation */
    size_t ncauses, decided_causes;
    uint32_t ended, ended_well;   /* ranks */
    bool pardoned;                /* auxiliaries had failed when dtrun learnt that all ranks had
                                   * ended with 0, */
    uint64_t through_ns;          /* which was then */
    bool stopped_auxiliaries;     /* as nothing else was left to be ended */
    bool limit_over;              /* --timeout */
    uint64_t first_end_ns;        /* when dtrun was told that the first of them had ended with 0 */
    uint32_t running;             /* hosts whose ranks all run */
    uint32_t nodes, reached;      /* hosts that were sent START; that have said whom they reach */
    bool apart;                   /* some do not reach each other */
    bool cut_off;                 /* ... and the job is to go on without them */
    uint64_t decided, decided_ns; /* when the engine first ended ranks after the last START */
    bool may_restart;             /* by the rules, then */
    uint64_t finished;            /* the engine has shown that the job is over */
    bool lost_for_good;           /* when finished: a host that the job needed was not usable */
    struct sim_order orders[SIM_ORDERS_MAX];
    size_t norders;
    uint64_t ordered_ns; /* when the last order came */
    uint64_t gathered;   /* signals of a batch system that dtrun is about to act upon, as a set */
    uint64_t acted;      /* those that it has acted upon last */
    uint64_t acted_ns;
    uint32_t round;  /* of signals that ranks are to get, each once */
    bool preempted;  /* a rank has exited with 75 after a signal */
    bool lost_early; /* a connection has ended before the first START */
    uint32_t went;   /* the newest generation whose ranks were let go */
};

struct sim_input { /* dtrun's standard input */
    uint64_t read; /* bytes */
    uint64_t base; /* of these, before the generation began */
    uint64_t credit;
    bool ended;
    bool planned; /* reading is */
};

struct sim_hang { /* a linked rank hangs, and the others wait for it */
    uint32_t generation;
    uint32_t ended; /* the generation, when dtrun has given the rank up */
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
    bool pausing; /* agents were told to stop ranks, and dtrun has not gone on yet */
    bool ended;
    struct sim_host *hosts;
    struct sim_agent *agents;
    struct sim_conn *conns;
    struct sim_shown (*shown)[SIM_STREAMS]; /* by rank */
    struct sim_input input;
    struct sim_hang hang;
    bool struck[SIM_INJECT_MAX]; /* that fault of --inject, as dtrun knows */
    uint64_t owed;               /* bytes that the reader has not taken yet */
    uint32_t well_generation;    /* in which so many ranks have really ended with 0: */
    uint32_t well;
    int64_t durable;           /* step of the newest checkpoint, or -1 */
    uint32_t stuck_generation; /* in which linked ranks wait for one that died or hangs */
    struct sim_witness witness;
    char broken[512]; /* which invariant does not hold, or "" */
};

/* world.c */
/* Runs the scenario to its end. Returns whether all invariants held; else w->broken names one. */
bool sim_world_run(struct sim_world *w, const struct sim_scenario *s, bool trace);
void sim_world_free(struct sim_world *w);
void sim_later(struct sim_world *w, uint64_t ns, struct sim_event e);
void sim_trace(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_broken(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Time passes, and dtrun does nothing. */
void sim_stand_still(struct sim_world *w, uint64_t ns);

/* network.c */
extern const struct dt_job_ops sim_ops;
void sim_send(struct sim_world *w, struct sim_agent *a, uint8_t type,
              union dt_msg *msg); /* frees msg */
/* Sends the end of the connection: to dtrun, to the agent, to both. */
void sim_conn_end(struct sim_world *w, struct sim_conn *c, const char *why);
void sim_conn_hang_up(struct sim_world *w, struct sim_conn *c);
void sim_conn_break(struct sim_world *w, struct sim_conn *c);

/* agent.c */
struct sim_agent *sim_agent_new(struct sim_world *w, struct sim_conn *c);
void sim_agent_hear(struct sim_world *w, struct sim_event *e);
void sim_agent_hung_up(struct sim_world *w, struct sim_agent *a);
void sim_agent_die(struct sim_world *w, struct sim_agent *a); /* with its ranks, at once */
uint64_t sim_host_clock(const struct sim_world *w, const struct sim_host *h);
bool sim_agent_is_fenced(const struct sim_world *w, const struct sim_agent *a);
/* A process has ended: code, or signo. */
void sim_agent_reap(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int code,
                    int signo);
void sim_agent_flush(struct sim_world *w, struct sim_agent *a);
void sim_agent_repeat(struct sim_world *w, struct sim_agent *a); /* of the generation before */

/* ranks.c */
void sim_ranks_begin(struct sim_world *w, struct sim_agent *a);
void sim_ranks_meet(struct sim_world *w, struct sim_agent *a); /* TABLE has come */
void sim_ranks_abort(struct sim_world *w, struct sim_agent *a);
void sim_rank_signal(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int signo);
void sim_rank_fail(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int code,
                   int signo);
int64_t sim_rank_step(const struct sim_world *w, const struct sim_rank *r);
struct sim_rank *sim_rank_find(struct sim_world *w, uint32_t rank, struct sim_agent **a);
/* n bytes of what that process prints, from this position on. */
void sim_stream_bytes(char *out, uint64_t from, size_t n, uint32_t generation, uint32_t rank,
                      int fd);

/* What the process, which is one of the agent's, does after so long; unless it has ended by then.
 */
void sim_plan(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r, uint64_t ns,
              sim_action_f act, int what);
/* The process of such an event. NULL: it has ended, or it stands still; then the event comes again.
 */
struct sim_rank *sim_come_to(struct sim_world *w, struct sim_event *e);

/* auxiliaries.c */
bool sim_is_auxiliary(const struct sim_world *w, uint32_t number);
void sim_auxiliary_begins(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r);
void sim_auxiliaries_rank_ended(struct sim_world *w, uint32_t generation); /* with 0 */
/* dtrun knows that all ranks have exited with 0, there are auxiliaries, and nothing has failed. */
bool sim_are_ranks_through(const struct sim_world *w);
void sim_auxiliaries_pardon(struct sim_world *w); /* dtrun learns of a rank's end with 0 */
/* The engine sends STOP. Returns whether it does so because only auxiliaries are left. */
bool sim_check_auxiliaries_stopped(struct sim_world *w);

/* faults.c */
void sim_faults_plan(struct sim_world *w);

/* invariants.c */
void sim_check_sent(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m);
void sim_check_told(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m);
void sim_check_closed(struct sim_world *w, struct sim_conn *c); /* by the engine */
void sim_check_fence(struct sim_world *w, uint64_t until_ns);   /* the engine sets DT_TIMER_FENCE */
void sim_check_lost(struct sim_world *w, struct sim_conn *c);
void sim_check_said(struct sim_world *w, const char *line);
void sim_check_end(struct sim_world *w);

/* output.c */
void sim_check_output(struct sim_world *w, uint32_t rank, int fd, const char *data, size_t n);
void sim_check_output_eof(struct sim_world *w, uint32_t rank, int fd);
/* A host is done with the generation: its ranks' output has been shown as a whole. */
void sim_check_streams_whole(struct sim_world *w, const struct sim_agent *a);
/* What the agent's ranks printed has ended, also where it was cut short. */
void sim_check_streams_ended(struct sim_world *w, const struct sim_agent *a);

/* input.c */
void sim_stdin_credit(void *arg, size_t n); /* these two are callbacks in struct dt_job_ops */
void sim_stdin_hold(void *arg);
void sim_stdin_started(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m);
void sim_check_stdin(struct sim_world *w, struct sim_conn *c, const struct dt_msg_stdin *m);
void sim_check_stdin_eof(struct sim_world *w, struct sim_conn *c);
void sim_agent_on_stdin(struct sim_world *w, struct sim_agent *a, const struct dt_msg_stdin *m);
void sim_agent_on_stdin_eof(struct sim_agent *a, const struct dt_msg_stdin_eof *m);
/* The rank reads standard input to its end before it ends by itself. */
bool sim_rank_awaits_stdin(const struct sim_world *w, const struct sim_agent *a,
                           const struct sim_rank *r);

/* hangs.c */
void sim_rank_hangs(struct sim_world *w, struct sim_agent *a, struct sim_rank *r);
void sim_agent_tell_waits(struct sim_world *w, const struct sim_agent *a, struct dt_msg_pong *pong);
void sim_check_abort(struct sim_world *w, const struct dt_msg_abort *m);

/* inject.c */
void sim_check_injections(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m);
void sim_check_struck(struct sim_world *w, const char *fault);
void sim_check_injected_loss(struct sim_world *w, struct sim_conn *c);
void sim_agent_inject(struct sim_world *w, struct sim_agent *a);

/* reach.c */
void sim_agent_on_probe(struct sim_world *w, struct sim_agent *a, const struct dt_msg_probe *m);
void sim_check_reach(struct sim_world *w, struct sim_conn *c, const struct dt_msg_reach *m);

/* signals.c */
void sim_signal(struct sim_world *w, int signo); /* dtrun gets it */
void sim_signalled(struct sim_world *w,
                   int signo); /* an agent tells of it, before the engine hears that */
void sim_signal_gathered(struct sim_world *w);
void sim_check_signal(struct sim_world *w, struct sim_conn *c, int signo);
/* A batch system has sent a signal that ends jobs, and dtrun waits for others to come with it. */
bool sim_is_about_to_end(const struct sim_world *w);
void sim_batch_signal(struct sim_world *w, int signo, bool to_dtrun);

/* restarts.c */
bool sim_restarts_allowed(const struct sim_world *w);
void sim_restarts_decided(struct sim_world *w);
void sim_restarts_started(struct sim_world *w);          /* a new generation */
uint64_t sim_restarts_due_ns(const struct sim_world *w); /* no ranks start again before */

/* oracle.c */
void sim_oracle_started(struct sim_world *w, uint32_t generation);
void sim_oracle_decided(struct sim_world *w);
void sim_oracle_finished(struct sim_world *w);
void sim_oracle_order(struct sim_world *w, struct sim_order order);
void sim_oracle_exit(struct sim_world *w, const struct sim_conn *c, const struct dt_msg_exit *m);
void sim_oracle_lost(struct sim_world *w, const struct sim_conn *c);
void sim_oracle_hang(struct sim_world *w);
void sim_oracle_refusal(struct sim_world *w, int code);
/* --exit-grace is over, and ranks run on that nothing else ends. */
bool sim_is_exit_grace_over(const struct sim_world *w);
/* Whether the rules of dtrun(1) allow this exit code. */
bool sim_oracle_accepts(const struct sim_world *w, int code, char *expected, size_t size);

#endif
