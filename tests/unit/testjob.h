/* A job without dtrun: this process plays the agents of several hosts and the launcher, with the
 * agent's own ranksock, and forks the ranks, which are functions of the test. Hosts are told apart
 * by their shared memory and talk TCP over 127.0.0.0/8. */
#ifndef TESTS_TESTJOB_H
#define TESTS_TESTJOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TESTJOB_RANKS = 20, TESTJOB_HOSTS = 20 };

struct testjob;

struct testjob_plan {
    const char *hosts;                /* as testjob_place takes it */
    int (*body)(int rank, void *arg); /* the rank; its result is the process's exit code */
    void *arg;
    const char *domain; /* of the hosts' names; NULL: they have none */

    /* All optional. */
    bool hold_table; /* the test calls testjob_table itself */
    void (*on_hello)(struct testjob *job, int rank, uint16_t port);
    void (*on_step)(struct testjob *job, int rank, int64_t step);
    void (*on_commit)(struct testjob *job, int64_t step, bool restored);
    void (*on_tick)(struct testjob *job, int ms); /* about every 5 ms */
};

struct testjob_rank {
    pid_t pid;
    int status; /* as of waitpid */
    bool linked, finalized, peer_lost;
    int64_t step; /* when it ended */
};

struct testjob_result {
    struct testjob_rank ranks[TESTJOB_RANKS];
    int n;
    char log[2048];        /* what the agents would have told the user */
    char last_calls[8192]; /* what ranks told of theirs, a line each */
};

/* Reads a placement, either as the number of ranks of each host, "3 1 2", or as the host of each
 * rank, "@012020": fills home by rank. Returns the number of ranks. */
int testjob_place(const char *hosts, int home[TESTJOB_RANKS]);

/* Returns 0 when every rank has ended by itself in time: all are killed after five minutes, for a
 * watchdog is not to bark at a busy machine. */
int testjob_run(const struct testjob_plan *plan, struct testjob_result *result);

/* Returns 0 when every rank has ended by itself, in time and with 0, and the agents had nothing to
 * tell; else says on standard error what was wrong. */
int testjob_pass(const struct testjob_plan *plan);
/* The same in each of these placements, up to NULL. */
int testjob_pass_all(const char *const *placements, int (*body)(int rank, void *arg));

/* For the hooks. */
void testjob_table(struct testjob *job);
void testjob_kill(struct testjob *job, int rank, int signo);
void testjob_go(struct testjob *job, int rank, int exit_code);
void testjob_watch_step(struct testjob *job, int rank, int64_t step);
uint64_t testjob_call(struct testjob *job, int rank); /* as of dt_hostshm_rank */
void *testjob_arg(struct testjob *job);

/* From now on hosts of a job have so many connections with each other; 0: as many as by default. */
void testjob_streams(unsigned n);

/* Memory that ranks and test share, zeroed; unmapped by the end of the test program. */
void *testjob_shared(size_t bytes);
/* Returns when so many ranks are here. What those do next who have left disturbs nobody on the way
 * out, as it may in a barrier. */
void testjob_meet(_Atomic int *here, int ranks);
int64_t testjob_now_us(void);

#endif
