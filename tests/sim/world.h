/* The world around the engine of one job: hosts with model agents and ranks, the network between
 * them and dtrun, and what a witness notes of it all.
 *
 * network.c carries messages and is the engine's ops; agent.c keeps PROTOCOL.md; ranks.c is the
 * program; faults.c spoils it; invariants.c and oracle.c judge what the engine does. */
#ifndef DT_SIM_WORLD_H
#define DT_SIM_WORLD_H

#include "launcher/job/job.h"
#include "tests/sim/scenario.h"

enum { SIM_STREAMS = 2, SIM_CAUSES_MAX = 128 };

struct sim_stream { /* line k of it is known from k: only lengths are kept */
    uint64_t produced, sent, credit;
    bool ended;
};

struct sim_rank { /* a process */
    uint32_t rank;
    bool alive;
    bool stubborn;  /* it hangs: neither ends nor heeds SIGTERM */
    bool peer_lost; /* a call of it has returned DT_ERR_PEER */
    bool asked;     /* it has had SIGTERM */
    bool stopped;   /* by SIGSTOP */
    uint64_t began_ns;
    uint64_t next_ns; /* when it would end by itself */
    uint64_t life;    /* raised to call off what was planned for it */
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
    bool fenced_in_time; /* no message has renewed the lease so late that dtrun could not know */
    bool refuses;        /* START ends with SPAWN_FAILED */
    struct sim_rank *ranks;
    uint32_t n, left; /* ranks; those alive */
    uint64_t heard_ns, lease_ns;
    bool in_doubt; /* its ranks are stopped, since others may run */
    bool held;     /* the lease is, for Ctrl-Z */
};

enum sim_side { SIM_TO_ENGINE, SIM_TO_AGENT };

struct sim_conn {
    struct sim_conn *next; /* of all */
    struct sim_host *host;
    struct sim_agent *agent; /* NULL: nobody is there yet */
    bool open;               /* as the engine sees it */
    bool over;               /* for the agent's side */
    bool greeted;
    bool dead[2];           /* by side: nothing arrives any more */
    bool given_up;          /* the engine has closed it */
    uint64_t last_ns[2][2]; /* arrival of the last message, by side and class */
    uint64_t most_ns;       /* that a message has been under way to the engine or the agent */
    uint64_t sent_ns;       /* by the engine, the last */
    bool pausing;           /* it was sent the last START between SIGSTOP and SIGCONT */
    uint32_t started;       /* generation that was sent START here, and has not been DONE; or 0 */
    uint64_t stopped_ns;    /* when it was sent STOP last */
    uint32_t stop_grace;    /* of the last STOP of it; UINT32_MAX: none */
};

struct sim_host {
    size_t index;
    char name[16], addr[24], identity[24];
    struct sim_conn *conn;    /* the newest */
    struct sim_agent *agents; /* all that have been here */
    uint64_t down_until, cut_until, frozen_until, slow_until;
    uint64_t clock_ns; /* its clock less ours, at the beginning */
    int64_t drift_ppm;
    bool spawn_fails;
    int spawn_code;
};

struct sim_shown { /* a stream, as the engine's user sees it */
    uint32_t generation;
    uint64_t bytes;
    bool ended;
    uint64_t owed; /* not yet shown */
};

enum sim_cause_kind { SIM_BY_SIGNAL, SIM_BY_EXIT, SIM_BY_LOSS, SIM_BY_REFUSAL, SIM_BY_PEER };

struct sim_cause { /* why the generation has failed, as the engine was told */
    enum sim_cause_kind kind;
    int code;           /* what dtrun would exit with */
    uint64_t at_ns;     /* true time */
    uint64_t unsure_ns; /* so far may the engine take that to be wrong */
};

struct sim_witness {
    uint32_t generation; /* of the last START */
    uint32_t restarts;
    struct sim_cause causes[SIM_CAUSES_MAX]; /* of this generation */
    size_t ncauses, decided_causes;
    uint32_t ended_well;
    bool is_decided;     /* something was told to end since the last START */
    uint64_t decided_ns; /* when */
    bool may_restart;    /* by the rules, then */
    int signo;           /* the first that ends jobs */
    uint64_t signo_ns;
    uint64_t limit_ns, start_limit_ns;
    uint64_t ordered_ns; /* when a signal or a limit came last */
    bool preempted;      /* a rank has exited with 75 after the signal */
    bool trouble;        /* a host could not be used */
    uint32_t went;       /* the newest generation of which ranks were let go */
    bool saved;          /* there was a checkpoint, or one was restored */
    bool met;            /* a rank has called dt_init */
    int64_t newest, newest_then;
    uint32_t fruitless;
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
    uint64_t standing_until; /* dtrun does not run */
    uint64_t timer_epoch[DT_JOB_TIMERS];
    bool pausing; /* agents have been told to stop ranks, and dtrun is not continued yet */
    bool ended;
    struct sim_host *hosts;
    struct sim_agent *agents;
    struct sim_conn *conns;
    struct sim_shown (*shown)[SIM_STREAMS]; /* by rank */
    uint64_t owed;                          /* bytes that are not shown yet */
    int64_t durable;                        /* step of the newest checkpoint, or -1 */
    uint32_t stuck_generation;              /* in which linked ranks wait for one that is gone */
    struct sim_witness witness;
    char broken[512]; /* the invariant; "": none */
};

/* world.c */
/* Runs the scenario to its end. Returns whether all was well; else w->broken says what was not. */
bool sim_world_run(struct sim_world *w, const struct sim_scenario *s, bool trace);
void sim_world_free(struct sim_world *w);
void sim_later(struct sim_world *w, uint64_t ns, struct sim_event e);
void sim_trace(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_broken(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Time goes on for all but dtrun. */
void sim_stand_still(struct sim_world *w, uint64_t ns);

/* network.c */
extern const struct dt_job_ops sim_ops;
void sim_send(struct sim_world *w, struct sim_agent *a, uint8_t type,
              union dt_msg *msg);                                            /* takes */
void sim_conn_end(struct sim_world *w, struct sim_conn *c, const char *why); /* the agent's side */
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
/* Bytes from ... of what that process prints. */
void sim_stream_bytes(char *out, uint64_t from, size_t n, uint32_t generation, uint32_t rank,
                      int fd);

/* faults.c */
void sim_faults_plan(struct sim_world *w);

/* invariants.c: they look at what the engine does, as it does it */
void sim_check_sent(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m);
void sim_check_told(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m);
void sim_check_output(struct sim_world *w, uint32_t rank, int fd, const char *data, size_t n);
void sim_check_said(struct sim_world *w, const char *line);
void sim_check_lost(struct sim_world *w, struct sim_conn *c);
void sim_check_end(struct sim_world *w);

/* oracle.c */
void sim_oracle_started(struct sim_world *w, const struct dt_msg_start *m);
void sim_oracle_decided(struct sim_world *w);
void sim_oracle_exit(struct sim_world *w, const struct sim_conn *c, const struct dt_msg_exit *m);
void sim_oracle_cause(struct sim_world *w, struct sim_cause cause);
/* Whether the rules of dtrun(1) allow this exit code. */
bool sim_oracle_accepts(const struct sim_world *w, int code, char *expected, size_t size);

#endif
