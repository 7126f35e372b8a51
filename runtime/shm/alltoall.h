/* Collectives in which the ranks of a host have blocks, in rounds through shared memory like those
 * of shm.h.
 *
 * Each function is a whole call, checked like dt_shm_begin; ranks are local ranks. Counts are in
 * elements of the call's dtype; its other fields only have to be the same on all ranks. If ranks
 * state counts that others do not know, all counts are compared before any data are copied. If one
 * rank gives another count than its peer expects, every rank returns DT_ERR_MISMATCH, and its
 * coll_error names the pair. Counts may be 0. Buffers need no alignment, and may be NULL if they
 * hold nothing.
 *
 * A call costs one synchronisation for each chunk: all-gather and gather use a rank's whole staging
 * area for a chunk, the others its share for one peer. */
#ifndef DT_SHM_ALLTOALL_H
#define DT_SHM_ALLTOALL_H

#include "runtime/base/blocks.h"
#include "runtime/shm/shm.h"

/* All-gather. blocks, the same on all ranks, are those of out. "in" is this rank's block, and may
 * be its place in out. */
dt_result_t dt_shm_all_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks);
/* For one of several hosts, with blocks for the ranks of all hosts. The call moves the blocks
 * between ranks of this host, except each rank's block for itself. It also adds up one word of each
 * rank. */
struct dt_shm_local {
    const uint32_t *ranks; /* by local rank, ascending: the number of its block */
    uint64_t *word;
};

/* All-to-all. in may be out if both have the same blocks. local: NULL if this is the only host. */
dt_result_t dt_shm_all_to_all(struct dt_shm *s, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken, const struct dt_shm_local *local);
/* Gather or scatter; likewise. */
dt_result_t dt_shm_rooted(struct dt_shm *s, const struct dt_call *call, const struct dt_rooted *g,
                          const struct dt_shm_local *local);

/* Reduces with the call's op and gives each rank its block of the result: the same bytes as from an
 * all-reduce. blocks, the same on all ranks, are those of "in". out may be this rank's block of
 * "in" or, if all blocks have the same size, the beginning of "in". divisor: of DT_AVG's sum, else
 * 1. */
dt_result_t dt_shm_reduce_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                                  void *out, const struct dt_blocks *blocks, int divisor);

#endif
