/* NCCL's own collectives on the same buffers, for comparison: each call is followed by a wait for
 * its end. */
#ifndef DT_CMD_PERF_RAW_H
#define DT_CMD_PERF_RAW_H

#include "cmd/perf/ops.h"

enum { DT_PERF_RAW_TEXT = 400 };

/* Finds NCCL's version of the collective. Returns false if NCCL has none. */
bool dt_perf_raw_find(struct dt_perf_op *raw, const struct dt_perf_op *op);
/* Returns whether NCCL has this type and operation. */
bool dt_perf_raw_combines(const struct dt_perf_op *op, const struct dt_perf_case *c);

/* Collective, on the chosen GPU (memory.h). Returns false on all ranks if NCCL cannot be used. text
 * has the reason on the ranks that know it, and is empty on the others. */
bool dt_perf_raw_open(char text[DT_PERF_RAW_TEXT]);
void dt_perf_raw_close(void);

#endif
