/* Faults that the environment asks for: STANDIN_NCCL_FAULTS lists entries FAULT:RANK:N, separated
 * by commas. The fault happens to that rank in the N-th such call that its process makes: in the
 * first if N is missing, in every one if N is 0. */
#ifndef TESTS_STANDIN_NCCL_FAULTS_H
#define TESTS_STANDIN_NCCL_FAULTS_H

#include <stdbool.h>

/* Counts a call, and tells whether the fault happens in it. */
bool standin_is_asked_for(const char *fault, int rank);

/* Appends a byte to the file that STANDIN_NCCL_HANGS names. */
void standin_tell_of_hang(void);

/* Tells, and never returns. */
_Noreturn void standin_hang_forever(void);

/* The rank that dtrun has given this process. */
int standin_rank(void);

#endif
