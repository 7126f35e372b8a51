/* Collectives that bring every rank of a communicator its own part, over the connections of its
 * mesh: whole calls among all its ranks, wherever they are. But where the mesh says who shares a
 * host (node_of), to-all, gather and scatter leave what goes between two ranks of one to
 * alltoall.h.
 *
 * The call's dtype is what counts count; beyond that its fields only have to be the same on all
 * ranks. Every frame states the count of its block: what one rank gives and the other does not
 * expect is DT_ERR_MISMATCH there, where the coll_error names the pair. A call returns when this
 * rank's part is done and the ranks that it dealt with have come to it. So a giver need not have
 * heard of a misfit by then, nor have the other ranks: a collective lets all of them know
 * (count_check.h). Counts may be 0. Buffers need no alignment, and may be NULL where they hold
 * nothing.
 */
#ifndef DT_TCP_ALLTOALL_H
#define DT_TCP_ALLTOALL_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"
#include "runtime/tcp/mesh.h"

/* Everybody's block to everybody. blocks, the same on all ranks, are those of out; "in" is this
 * rank's, and may be its place in out. Blocks go from rank to rank round a ring. */
dt_result_t dt_tcp_all_gather(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks);
/* A block from everybody to everybody, all at once. in and out do not overlap. */
dt_result_t dt_tcp_all_to_all(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken);
/* Everybody's block to root. out and blocks are root's alone; there, "in" may be its place in
 * out. */
dt_result_t dt_tcp_gather(struct dt_mesh *m, const struct dt_call *call, const void *in,
                          size_t count, void *out, const struct dt_blocks *blocks, uint32_t root);
/* To everybody its block from root. in and blocks are root's alone; there, out may be its place in
 * "in". */
dt_result_t dt_tcp_scatter(struct dt_mesh *m, const struct dt_call *call, const void *in,
                           const struct dt_blocks *blocks, void *out, size_t count, uint32_t root);
/* From one rank to another, which makes the same call: fields that would differ between the two
 * (who is whose peer) are to be set alike. */
dt_result_t dt_tcp_send(struct dt_mesh *m, const struct dt_call *call, const void *buf,
                        size_t count, uint32_t peer);
dt_result_t dt_tcp_recv(struct dt_mesh *m, const struct dt_call *call, void *buf, size_t count,
                        uint32_t peer);

#endif
