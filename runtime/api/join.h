/* Uneven data: ranks that have no more take part in the calls of those that have.
 *
 * Between dt_join_begin and dt_join every all-reduce and barrier begins with an announcement: one
 * all-reduce more, of a few words, in which ranks that have data tell what they are about to call,
 * and those that have none learn it, and make the same call with what changes nothing. */
#ifndef DT_API_JOIN_H
#define DT_API_JOIN_H

#include "runtime/comm/comm.h"

/* Fills count elements with what leaves every other operand as it is. For DT_AVG that is what it
 * is for DT_SUM. */
void dt_join_fill(void *buf, size_t count, dt_dtype_t dtype, dt_op_t op);

#endif
