/* Collectives in which each pair of ranks states the count of its own block: all-to-all, gather and
 * scatter. Before the call ends, every rank knows whether all pairs agree. shm/alltoall.h and
 * tcp/alltoall.h say which buffers may overlap. kind is the call that is reported. */
#ifndef DT_COMM_ALLTOALL_H
#define DT_COMM_ALLTOALL_H

#include "runtime/base/blocks.h"
#include "runtime/comm/comm.h"

/* An all-to-all as part of a call that has begun and that all ranks make. in and out do not
 * overlap. */
dt_result_t dt_comm_all_to_all_within(struct dt_comm *c, const struct dt_call *call, const void *in,
                                      const struct dt_blocks *given, void *out,
                                      const struct dt_blocks *taken);
dt_result_t dt_comm_all_to_all(struct dt_comm *c, enum dt_call_kind kind, const void *in,
                               const struct dt_blocks *given, void *out,
                               const struct dt_blocks *taken, dt_dtype_t dtype);
dt_result_t dt_comm_rooted(struct dt_comm *c, enum dt_call_kind kind, const struct dt_rooted *g,
                           dt_dtype_t dtype);

#endif
