/* A job without dtrun: this process plays the agents of several hosts and the launcher, with the
 * agent's own ranksock, and forks the ranks, which are functions of the test. Ranks find out by
 * their shared memory which of them are on one host. Hosts talk TCP over 127.0.0.0/8. */
#ifndef TESTS_UNIT_TESTJOB_H
#define TESTS_UNIT_TESTJOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TESTJOB_RANKS = 20, TESTJOB_HOSTS = 20 };

struct testjob;

struct testjob_plan {
    const char *hosts;                /* as testjob_place takes it */
    int (*body)(int rank, void *arg); /* the rank; its result is the exit code of the process */
    void *arg;
    const char *domain; /* of the hosts' names; NULL: none */

    /* All of these are optional. */
    bool hold_table; /* the test calls testjob_table itself */
    void (*on_hello)(struct testjob *job, int rank, uint16_t port);
    void (*on_step)(struct testjob *job, int rank, int64_t step);
    void (*on_commit)(struct testjob *job, int64_t step, bool restored);
    void (*on_tick)(struct testjob *job, int ms); /* about every 5 ms */
};

struct testjob_rank {
    pid_t pid;
    int status; /* as from waitpid */
    bool linked, finalized, peer_lost;
    int64_t step; /* when the rank ended */
};

struct testjob_result {
    struct testjob_rank ranks[TESTJOB_RANKS];
    int n;
    char log[2048];        /* what the agents would have told the user */
    char last_calls[8192]; /* what ranks reported of their last calls, a line each */
};

/* Reads a placement, either the number of ranks of each host, "3 1 2", or the host of each rank,
 * "@012020", and fills in home by rank. Returns the number of ranks. */
int testjob_place(const char *hosts, int home[TESTJOB_RANKS]);

/* Returns 0 if every rank has ended by itself in time. After five minutes all are killed; the
 * watchdog is so patient because the machine may be busy. */
int testjob_run(const struct testjob_plan *plan, struct testjob_result *result);

/* Returns 0 if every rank has ended by itself, in time and with 0, and the agents had nothing to
 * report. Otherwise prints to standard error what was wrong. */
int testjob_pass(const struct testjob_plan *plan);
/* Fails the test unless a job of this body, with arg, passes in this placement. */
void testjob_must_pass(const char *hosts, int (*body)(int rank, void *arg), const void *arg);
/* Does the same in each of these placements, up to NULL. */
int testjob_pass_all(const char *const *placements, int (*body)(int rank, void *arg));

/* For the hooks. */
void testjob_table(struct testjob *job);
void testjob_kill(struct testjob *job, int rank, int signo);
void testjob_go(struct testjob *job, int rank, int exit_code);
void testjob_watch_step(struct testjob *job, int rank, int64_t step);
uint64_t testjob_call(struct testjob *job, int rank); /* as from dt_hostshm_rank */
void *testjob_arg(struct testjob *job);

/* From now on each pair of hosts of a job has n connections. 0: the default number. */
void testjob_streams(unsigned n);

/* Memory that ranks and test share, zeroed. It is unmapped when the test program ends. */
void *testjob_shared(size_t bytes);
/* Returns when this many ranks have called it. Unlike in a barrier, a rank that has left does not
 * disturb the others by what it does next. */
void testjob_meet(_Atomic int *here, int ranks);
int64_t testjob_now_us(void);

#endif
