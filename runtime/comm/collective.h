/* The collectives of a communicator, for the thread that has entered it (dt_context_enter). The
 * public calls, checkpoints and GPU code are built on them. Each compares the ranks' calls. */
#ifndef DT_COMM_COLLECTIVE_H
#define DT_COMM_COLLECTIVE_H

#include "runtime/base/blocks.h"
#include "runtime/comm/comm.h"

/* in and out are the same buffer or do not overlap. */
dt_result_t dt_comm_all_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, dt_op_t op);
/* options are those that dt_reduceoptions_read stores. buffers is what dt_reduceoptions_mark_buffer
 * returns, or 0. */
dt_result_t dt_comm_all_reduce_with(struct dt_comm *c, const void *in, void *out, size_t count,
                                    dt_dtype_t dtype, dt_op_t op,
                                    const dt_all_reduce_options_t *options, uint64_t buffers);
/* The same call for a rank without data. buf holds neutral elements, and keeps them. */
dt_result_t dt_comm_all_reduce_no_data(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                                       dt_op_t op, const dt_all_reduce_options_t *options,
                                       uint64_t buffers);
dt_result_t dt_comm_broadcast(struct dt_comm *c, void *buf, size_t count, dt_dtype_t dtype,
                              int root);
dt_result_t dt_comm_reduce(struct dt_comm *c, const void *in, void *out, size_t count,
                           dt_dtype_t dtype, dt_op_t op, int root);
/* An all-gather of a small table: each rank's block becomes known to all. On entry all other blocks
 * are zero. bytes: the size of a block, a multiple of 8. */
dt_result_t dt_comm_all_gather_table(struct dt_comm *c, enum dt_call_kind kind, void *table,
                                     size_t bytes);
/* The same, and afterwards each rank runs then(arg), which must not make a call on c. The call ends
 * when all ranks have run it. */
dt_result_t dt_comm_all_gather_table_then(struct dt_comm *c, enum dt_call_kind kind, void *table,
                                          size_t bytes, void (*then)(void *arg), void *arg);
/* Parts of a larger call of this kind: an all-reduce of words, and a broadcast of bytes. */
dt_result_t dt_comm_all_reduce_words(struct dt_comm *c, enum dt_call_kind kind, int64_t *words,
                                     size_t n, dt_op_t op);
dt_result_t dt_comm_broadcast_bytes(struct dt_comm *c, enum dt_call_kind kind, void *buf,
                                    size_t bytes, int root);
/* The announcement of join.h: every word becomes the maximum over all ranks. It is reported as the
 * call c->next. */
dt_result_t dt_comm_announce(struct dt_comm *c, int64_t *words, size_t n);
/* Collectives in which ranks have blocks. Buffers may overlap as in the public calls. kind is the
 * call that is reported. */
dt_result_t dt_comm_reduce_scatter(struct dt_comm *c, enum dt_call_kind kind, const void *in,
                                   void *out, const struct dt_blocks *blocks, dt_dtype_t dtype,
                                   dt_op_t op);
dt_result_t dt_comm_all_gather(struct dt_comm *c, enum dt_call_kind kind, const void *in, void *out,
                               const struct dt_blocks *blocks, dt_dtype_t dtype);
/* Waits until every rank makes this call, which moves no data. */
dt_result_t dt_comm_barrier(struct dt_comm *c, enum dt_call_kind kind);
/* The same, and copies rank 0's thresholds in buf to all other ranks. apply sets them. Then the
 * hosts connect as the thresholds say. */
dt_result_t dt_comm_first_barrier(struct dt_comm *c, enum dt_call_kind kind, void *buf,
                                  size_t bytes, void (*apply)(struct dt_comm *c, void *buf));
/* A barrier in which every rank's call must be the same. For algorithms that do not compare the
 * calls themselves. */
dt_result_t dt_comm_match(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call);
/* The same, followed by then(c, arg), which executes the rest of the call. Returns its result. */
dt_result_t dt_comm_match_then(struct dt_comm *c, enum dt_call_kind kind, struct dt_call call,
                               dt_result_t (*then)(struct dt_comm *c, void *arg), void *arg);

#endif
