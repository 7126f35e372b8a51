/* --tune: measures the thresholds of collectives (runtime/base/tuning.h) with the ranks of this
 * job, and writes them to the file that the runtime reads. */
#ifndef DT_CMD_PERF_TUNE_H
#define DT_CMD_PERF_TUNE_H

#include "runtime/dtrun.h"

enum { DT_PERF_TUNE_WRONG = 400 }; /* bytes of a text that says what is wrong with the file */

/* Collective, after dt_init. Rank 0 prints what it chose, and writes the file. calls is the number
 * of calls of one algorithm at one size in each turn; 0: as many as take a while. wrong receives
 * what is wrong with the file, or "". */
dt_result_t dt_perf_tune(int calls, char wrong[DT_PERF_TUNE_WRONG]);

#endif
