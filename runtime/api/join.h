/* Uneven data: ranks that have run out of data take part in the calls of those that have not.
 *
 * Between dt_join_begin and dt_join, an announcement precedes every all-reduce and barrier. It is a
 * small all-reduce in which the ranks with data say which call comes next. The ranks without data
 * learn it there, and make the same call with neutral elements. */
#ifndef DT_API_JOIN_H
#define DT_API_JOIN_H

#include "runtime/comm/comm.h"

/* Fills count elements with the neutral element of op. For DT_AVG that is the one of DT_SUM. */
void dt_join_fill(void *buf, size_t count, dt_dtype_t dtype, dt_op_t op);

#endif
