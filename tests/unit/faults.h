/* Faults in what the library asks of the system: the k-th call of a function fails, does less than
 * was asked, or kills the process.
 *
 * The linker gives every call of such a function in the program to a function of faults.c
 * (--wrap; tests/runtime.mk lists them), which hands it on unless this process has armed a fault.
 * What libc calls by itself is not met. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

struct fault {
    const char *call;
    int error;     /* errno; 0: the call does one byte, or loses the descriptor that comes along */
    bool harmless; /* the library has to get over it */
};

/* All there are. */
extern const struct fault faults[];
extern const size_t faults_n;

/* From now on the k-th call (from 1) of the fault's function suffers it. */
void faults_arm(const struct fault *f, unsigned k);
/* From now on the k-th call of any of the functions, or entry to some of the library's own that
 * move data, first does that, once; 0: none does. */
void faults_arm_passage(unsigned k, void (*there)(void));
/* Likewise, and what it does is to kill the process. */
void faults_arm_death(unsigned k);
/* Ends that. Returns how many calls there were that could have been the k-th. */
unsigned faults_disarm(void);
bool faults_struck(void);

#endif
