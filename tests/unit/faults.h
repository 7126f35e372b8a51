/* Faults in what the library asks of the system: the k-th call of a function fails, does less than
 * was asked, or kills the process.
 *
 * The linker sends every call of such a function in the program to a function in faults.c (--wrap;
 * tests/runtime.mk lists them), which passes it on unless this process has armed a fault. Calls
 * inside libc are not affected. */
#ifndef TESTS_UNIT_FAULTS_H
#define TESTS_UNIT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

struct fault {
    const char *call;
    int error;     /* errno; 0: the call transfers one byte, or loses the attached descriptor */
    bool harmless; /* the library must recover from it */
};

/* All faults. */
extern const struct fault faults[];
extern const size_t faults_n;

/* From now on the k-th call (from 1) of the fault's function fails in this way. */
void faults_arm(const struct fault *f, unsigned k);
/* From now on the k-th call of any of these functions, or of some of the library's own that move
 * data, first calls there, once. 0: none does. */
void faults_arm_passage(unsigned k, void (*there)(void));
/* Does the same with a function that kills the process. */
void faults_arm_death(unsigned k);
/* Disarms the fault. Returns the number of calls that could have been the k-th. */
unsigned faults_disarm(void);
bool faults_triggered(void);

#endif
