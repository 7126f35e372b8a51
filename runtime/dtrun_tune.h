/* dtrun_tune.h: an addition to dtrun.h for programs that measure, such as dtrun-perf --tune. */
#ifndef DTRUN_TUNE_H
#define DTRUN_TUNE_H

#include "dtrun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective: adds rank 0's lines, which are as in a file of thresholds (dtrun-tuning(5)), to the
 * thresholds by which calls on comm choose their algorithms from now on. DT_ERR_ARG, on all ranks:
 * a line is wrong, and nothing has changed. */
DT_API dt_result_t dt_comm_tune(dt_comm_t *comm, const char *lines);

#ifdef __cplusplus
}
#endif

#endif
