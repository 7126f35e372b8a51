/* Makes a collective that has begun (comm.h): chooses the algorithm by the size of the data and the
 * placement of the ranks. Algorithms are in shm/, tcp/ and coll/. All functions compare the ranks'
 * calls, except where one says otherwise. */
#ifndef DT_COMM_ALGORITHM_H
#define DT_COMM_ALGORITHM_H

#include "runtime/base/blocks.h"
#include "runtime/comm/comm.h"

/* Any op but DT_ADASUM. o: how data travel between hosts; NULL: exactly. in and out are the same
 * buffer or do not overlap. */
dt_result_t dt_algorithm_all_reduce(struct dt_comm *c, const struct dt_call *call,
                                    const dt_all_reduce_options_t *o, const void *in, void *out);
/* The divisor of the sum of all ranks' data. */
static inline int dt_algorithm_divisor(const struct dt_comm *c, const struct dt_call *call)
{
    return call->op == DT_AVG ? c->size : 1;
}

dt_result_t dt_algorithm_barrier(struct dt_comm *c, const struct dt_call *call);
/* From call->root. */
dt_result_t dt_algorithm_broadcast(struct dt_comm *c, const struct dt_call *call, void *buf,
                                   size_t bytes);
/* The same from root, without comparing the calls. */
dt_result_t dt_algorithm_pass_on(struct dt_comm *c, const struct dt_call *call, void *buf,
                                 size_t bytes, uint32_t root);
/* To call->root. */
dt_result_t dt_algorithm_reduce(struct dt_comm *c, const struct dt_call *call, const void *in,
                                void *out);
/* blocks, the same on all ranks, are those of "in" for a reduce-scatter, of out for an all-gather.
 * collective.h says which buffers may overlap. */
dt_result_t dt_algorithm_reduce_scatter(struct dt_comm *c, const struct dt_call *call,
                                        const void *in, void *out, const struct dt_blocks *blocks);
dt_result_t dt_algorithm_all_gather(struct dt_comm *c, const struct dt_call *call, const void *in,
                                    void *out, const struct dt_blocks *blocks);

#endif
