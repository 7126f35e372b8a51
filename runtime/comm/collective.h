/* The collectives of a communicator: its own thread's, after dt_context_enter. The public calls are
 * thin covers over these; the runtime's own parts (checkpoints, device backends) use them directly.
 */
#ifndef DT_COMM_COLLECTIVE_H
#define DT_COMM_COLLECTIVE_H

#include "runtime/base/blocks.h"
#include "runtime/comm/comm.h"

/* in may be out; otherwise they do not overlap. */
dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op);
/* options: as dt_reduceoptions_read gives them; pieces: as dt_reduceoptions_mark_piece does, or 0.
 */
dt_result_t dt_comm_all_reduce_with(struct dt_comm *c, const void *in, void *out, size_t count,
                                    dt_dtype_t dtype, dt_op_t op,
                                    const dt_all_reduce_options_t *options, uint64_t pieces);
/* The same call of a rank that has nothing to add but neutral elements: these stay as they are. */
dt_result_t dt_comm_all_reduce_nothing(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                                       dt_op_t op, const dt_all_reduce_options_t *options,
                                       uint64_t pieces);
dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root);
/* Shows every rank's block of a table, that has one for each rank, to all others. All other blocks
 * are zero before; bytes: of a block, in whole words of 8. */
dt_result_t dt_comm_show(struct dt_comm *c, enum dt_call_kind kind, void *table, size_t bytes);
/* The same call, which then does something that is no call on c, and ends when all have done so. */
dt_result_t dt_comm_show_and(struct dt_comm *c, enum dt_call_kind kind, void *table, size_t bytes,
                             void (*then)(void *arg), void *arg);
/* Parts of a larger call, of that kind: an all-reduce of words, and a broadcast of bytes. */
dt_result_t dt_comm_fold_for(struct dt_comm *c, enum dt_call_kind kind, int64_t *words, size_t n,
                             dt_op_t op);
dt_result_t dt_comm_spread_for(struct dt_comm *c, enum dt_call_kind kind, void *buf, size_t bytes,
                               int root);
/* In which ranks tell each other what comes next (join.h): every word becomes the largest of all
 * ranks'. It passes for c->next. */
dt_result_t dt_comm_announce(struct dt_comm *c, int64_t *words, size_t n);
/* Those that give ranks parts of their own, as of alltoall.h and alltoall.h, which say what may
 * overlap. kind: what the call counts as. */
dt_result_t dt_comm_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, int root);
dt_result_t dt_comm_reduce_scatter(struct dt_comm *c, enum dt_call_kind kind, const void *in,
                                   void *out, const struct dt_blocks *blocks, dt_dtype_t dtype,
                                   dt_op_t op);
dt_result_t dt_comm_all_gather(struct dt_comm *c, enum dt_call_kind kind, const void *in, void *out,
                               const struct dt_blocks *blocks, dt_dtype_t dtype);
/* Waits for every rank to make this very call, of a kind that moves no data; and with the same
 * number, of bytes. */
dt_result_t dt_comm_meet(struct dt_comm *c, enum dt_call_kind kind);
dt_result_t dt_comm_meet_for(struct dt_comm *c, enum dt_call_kind kind, size_t bytes);
/* Likewise, and copies rank 0's buffer of thresholds to all others. heed chooses by them, and then
 * hosts are connected as they say. */
dt_result_t dt_comm_meet_first(struct dt_comm *c, enum dt_call_kind kind, void *buf, size_t bytes,
                               void (*heed)(struct dt_comm *c, void *buf));
/* Waits for every rank to be about to make this call with an algorithm that does not compare the
 * calls itself. */
dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call);
/* The same call, of which this is the rest. then returns as what is between begin and end does. */
dt_result_t dt_comm_match_and(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call,
                              dt_result_t (*then)(struct dt_comm *c, void *arg), void *arg);

#endif
