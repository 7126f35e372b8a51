/* NCCL's own collectives on the same buffers, for comparison: each call, then a wait for its end.
 */
#ifndef DT_CMD_PERF_RAW_H
#define DT_CMD_PERF_RAW_H

#include "cmd/perf/ops.h"

enum { DT_PERF_RAW_TEXT = 400 };

/* The collective as NCCL makes it. False: NCCL has none such. */
bool dt_perf_raw_find(struct dt_perf_op *raw, const struct dt_perf_op *op);
/* Whether NCCL has this type and operation. */
bool dt_perf_raw_combines(const struct dt_perf_op *op, const struct dt_perf_case *c);

/* Collective, on the GPU that was chosen (memory.h). False on all ranks: NCCL cannot be used; on
 * the ranks that know why text tells, on the others it is empty. */
bool dt_perf_raw_open(char text[DT_PERF_RAW_TEXT]);
void dt_perf_raw_close(void);

#endif
