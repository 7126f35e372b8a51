/* Collectives in which ranks have blocks, over the connections of a mesh. Each function is a whole
 * call among all ranks of the communicator, wherever they are. If the mesh knows which ranks share
 * a host (node_of), then all-to-all, gather and scatter leave the transfers within a host to
 * shm/alltoall.h.
 *
 * Counts are in elements of the call's dtype; its other fields only have to be the same on all
 * ranks. Every frame states the count of its block. If a rank expects another count, it gets
 * DT_ERR_MISMATCH, and its coll_error names the pair. A call returns when this rank's transfers are
 * done and its peers have made the call. So the sender, and other ranks, may not know of a mismatch
 * yet; collectives tell them through count_check.h. Counts may be 0. Buffers need no alignment, and
 * may be NULL if they hold nothing. */
#ifndef DT_TCP_ALLTOALL_H
#define DT_TCP_ALLTOALL_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"
#include "runtime/tcp/mesh.h"

/* All-gather. blocks, the same on all ranks, are those of out. "in" is this rank's block, and may
 * be its place in out. Blocks travel round a ring of ranks. */
dt_result_t dt_tcp_all_gather(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              void *out, const struct dt_blocks *blocks);
/* All-to-all, with all transfers at once. in and out do not overlap. */
dt_result_t dt_tcp_all_to_all(struct dt_mesh *m, const struct dt_call *call, const void *in,
                              const struct dt_blocks *given, void *out,
                              const struct dt_blocks *taken);
dt_result_t dt_tcp_rooted(struct dt_mesh *m, const struct dt_call *call, const struct dt_rooted *g);
/* Send and receive between two ranks. Both pass an equal call: fields that would differ, such as
 * the peer, must be set alike. */
dt_result_t dt_tcp_send(struct dt_mesh *m, const struct dt_call *call, const void *buf,
                        size_t count, uint32_t peer);
dt_result_t dt_tcp_recv(struct dt_mesh *m, const struct dt_call *call, void *buf, size_t count,
                        uint32_t peer);

#endif
