/* dtrun_tune.h: what programs that measure use beside dtrun.h, as dtrun-perf --tune does. */
#ifndef DTRUN_TUNE_H
#define DTRUN_TUNE_H

#include "dtrun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective: from now on calls on comm choose their algorithms by rank 0's lines, too, which are
 * those of a file of thresholds (dtrun-tuning(5)). DT_ERR_ARG, on all ranks: a line is wrong, and
 * nothing has changed. */
DT_API dt_result_t dt_comm_tune(dt_comm_t *comm, const char *lines);

#ifdef __cplusplus
}
#endif

#endif
