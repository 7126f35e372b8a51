/* The operation behind dt_all_reduce, for callers that execute it later. */
#ifndef DT_API_ALLREDUCE_H
#define DT_API_ALLREDUCE_H

#include "runtime/api/operation.h"

/* Returns the operation of an in-place dt_all_reduce. */
struct dt_operation dt_allreduce_in_place(dt_comm_t *comm, void *buf, size_t count,
                                          dt_dtype_t dtype, dt_op_t op);

#endif
