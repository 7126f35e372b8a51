/* The all-reduce with DT_ADASUM (coll/adasum.h has the arithmetic). Each rank gets a chunk of every
 * rank's vector and combines them, then all gather the results. If vectors are short, each rank
 * gets all of them, whole. */
#ifndef DT_COMM_ADASUM_REDUCE_H
#define DT_COMM_ADASUM_REDUCE_H

#include "runtime/comm/comm.h"

/* For a call that has begun, among two ranks or more; their number is a power of two. */
dt_result_t dt_adasum_reduce(struct dt_comm *c, const struct dt_call *call, const void *in,
                             void *out);

#endif
