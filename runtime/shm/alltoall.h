/* Collectives that bring every rank of a host its own part: through the memory that their agent
 * gave them, in rounds, as those of shm.h.
 *
 * Every function is a whole call, checked as dt_shm_begin does; ranks are local ranks. The call's
 * dtype is what counts count; beyond that its fields only have to be the same on all ranks. Where
 * ranks state counts that others cannot know, all of them are compared before anything is taken:
 * when what one rank gives is not what the other expects, every rank returns DT_ERR_MISMATCH, and
 * its coll_error names the pair. Counts may be 0. Buffers need no alignment, and may be NULL where
 * they hold nothing.
 *
 * Costs one synchronisation for every chunk of a rank's staging (all-gather, gather) or of its
 * part for one peer (the others). */
#ifndef DT_SHM_ALLTOALL_H
#define DT_SHM_ALLTOALL_H

#include "runtime/base/blocks.h"
#include "runtime/shm/shm.h"

/* Everybody's block to everybody. blocks, the same on all ranks, are those of out; "in" is this
 * rank's, and may be its place in out. */
dt_result_t dt_shm_all_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks);
/* A block from everybody to everybody. in may be out, if both have the same blocks. */
dt_result_t dt_shm_all_to_all(struct dt_shm *s, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken);
/* Everybody's block to root. out and blocks are root's alone; there, "in" may be its place in
 * out. */
dt_result_t dt_shm_gather(struct dt_shm *s, const struct dt_call *call, const void *in,
                          size_t count, void *out, const struct dt_blocks *blocks, uint32_t root);
/* To everybody its block from root. in and blocks are root's alone; there, out may be its place in
 * "in". */
dt_result_t dt_shm_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                           const struct dt_blocks *blocks, void *out, size_t count, uint32_t root);
/* Three of these within a host of several, with blocks for the ranks of all: they move what is
 * between this host's, but for what a rank has for itself. Before, they add up a word of each,
 * which becomes the sum. */
struct dt_near {
    const uint32_t *ranks; /* by local rank, growing: which block is its */
    uint64_t *word;
};

dt_result_t dt_shm_all_to_all_near(struct dt_shm *s, const struct dt_call *call, const void *in,
                                   const struct dt_blocks *given, void *out,
                                   const struct dt_blocks *taken, struct dt_near near);
dt_result_t dt_shm_gather_near(struct dt_shm *s, const struct dt_call *call, const void *in,
                               size_t count, void *out, const struct dt_blocks *blocks,
                               uint32_t root, struct dt_near near);
dt_result_t dt_shm_scatter_near(struct dt_shm *s, const struct dt_call *call, const void *in,
                                const struct dt_blocks *blocks, void *out, size_t count,
                                uint32_t root, struct dt_near near);

/* Folds everybody's "in" with the call's op, and gives everybody its block of the result: the same
 * bytes as of an all-reduce. blocks, the same on all ranks, are those of "in". out may be this
 * rank's block of it or, if all are alike, its beginning. divisor: of DT_AVG's sum, or 1. */
dt_result_t dt_shm_reduce_scatter(struct dt_shm *s, const struct dt_call *call, const void *in,
                                  void *out, const struct dt_blocks *blocks, int divisor);

#endif
