/* Jobs in which one rank, the victim, is disturbed at some point: a system call fails, or the rank
 * is killed. */
#ifndef TESTS_UNIT_FAULTS_TRIAL_H
#define TESTS_UNIT_FAULTS_TRIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/unit/faults.h"
#include "tests/unit/testjob.h"

struct trial {
    int victim;
    const struct fault *fault;
    unsigned k;      /* the call that fails, or the passage at which the victim dies */
    size_t death_in; /* the call, see everycall.h */
};

/* What ranks report. */
extern struct trial_shared {
    bool triggered;
    unsigned passages;
    _Atomic int ready;
    int code[TESTJOB_RANKS];
    size_t at[TESTJOB_RANKS]; /* index of the call that failed */
    char text[TESTJOB_RANKS][512];
} * trial_shared;

extern struct testjob_result trial_result;

/* Runs around all tests of a program: makes a directory for checkpoints. */
int trial_set_up(void **state);
int trial_tear_down(void **state);

/* Runs testjob_run without checkpoints of an earlier trial. */
int trial_run(const char *hosts, int (*body)(int, void *), struct trial *trial);

#endif
