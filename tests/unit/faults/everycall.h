/* Every call that the ranks of a job make together, once, with a check of its result. For tests
 * that disturb a job at any point. */
#ifndef TESTS_UNIT_FAULTS_EVERYCALL_H
#define TESTS_UNIT_FAULTS_EVERYCALL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/dtrun.h"

enum { EVERYCALL_WRONG = 1000 }; /* as dt_result_t: DT_OK, but with a wrong result */

/* The calls 0 to n - 1, in an order in which they can be made: first dt_init, then every collective
 * that dtrun-perf measures, then all else, and last dt_finalize. */
size_t everycall_n(void);
/* What a program does before dt_init. Returns whether the library opens all descriptors from then
 * on. */
bool everycall_prepare(void);
const char *everycall_name(size_t call);
dt_result_t everycall_make(size_t call);

#endif
