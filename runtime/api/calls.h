/* Operations behind the public calls, for callers that execute them later. */
#ifndef DT_API_CALLS_H
#define DT_API_CALLS_H

#include "runtime/api/operation.h"

/* The operation of an in-place dt_all_reduce. */
struct dt_operation dt_calls_all_reduce(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype,
                                        dt_op_t op);

#endif
