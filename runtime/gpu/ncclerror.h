/* What went wrong in NCCL, as the error of a call on the communicator. */
#ifndef DT_GPU_NCCLERROR_H
#define DT_GPU_NCCLERROR_H

#include "runtime/dtrun.h"
#include "runtime/gpu/nvidia/abi_nccl.h"

struct dt_comm;

enum { DT_NCCL_TEXT = 512 };

/* Writes a text such as "ncclAllReduce: unhandled system error (ncclSystemError, 2): ", NCCL's own
 * text, and what to do. Returns text. */
const char *dt_nccl_describe(const char *function, ncclResult_t error, char text[DT_NCCL_TEXT]);
/* Sets c->coll_error after this function of NCCL has failed: to what has stopped c, if that may be
 * the reason, else to DT_ERR_NCCL with NCCL's text. Waits a moment for the report of that
 * reason. Returns the code. */
dt_result_t dt_ncclerror(struct dt_comm *c, const char *function, ncclResult_t error);
/* Another remedy, if this function can be done without: "; " and a clause, else "". */
const char *dt_nccl_way_around(const char *function);

#endif
