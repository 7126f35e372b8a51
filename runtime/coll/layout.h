/* How hosts divide data that they reduce together, with one or several leaders each: into chunks,
 * each chunk into a share for each leader, and each share into a block for each host, which reduces
 * it. It also says in which order a leader sends segments to reduce, and segments that it has
 * reduced. Pure.
 *
 * The result is for all ranks (all-reduce), for one rank (reduce), or for each rank its own block
 * (reduce-scatter). In the last case a chunk contains the blocks of as many ranks of each host as
 * there are leaders, or the same range of each of these blocks: leader l handles the blocks of
 * local ranks l, l + n_leaders, and so on. If every rank is a leader, each reduces its own block.
 */
#ifndef DT_COLL_LAYOUT_H
#define DT_COLL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"

/* The ranks of a communicator, grouped by host, and ordered by local rank within a host. */
struct dt_host_ranks {
    uint32_t *ranks;
    uint32_t *first; /* by host: index of its first rank; one more entry: the number of ranks */
};

/* Fills in r. It is zeroed, and has room for all ranks and for one host more than there are.
 * node_of: the host of each rank. */
void dt_host_ranks_fill(struct dt_host_ranks *r, const uint32_t *node_of, uint32_t size,
                        uint32_t hosts);

static inline uint32_t dt_host_ranks_count(const struct dt_host_ranks *r, uint32_t host)
{
    return r->first[host + 1] - r->first[host];
}

/* The number of leaders: ranks of each host that talk to other hosts when large data are reduced.
 * least_ranks: ranks of the smallest host; round: bytes that a round may have on every host. 1: the
 * first rank of each host talks for all. */
uint32_t dt_layout_leaders(size_t hosts, size_t least_ranks, size_t round);

enum dt_layout_for { DT_LAYOUT_FOR_ALL, DT_LAYOUT_FOR_ROOT, DT_LAYOUT_FOR_EACH };

struct dt_layout {
    enum dt_layout_for recipients;
    uint32_t hosts;
    uint32_t n_leaders;                     /* leaders of each host */
    uint32_t root_host;                     /* for root: its host */
    bool collects;                          /* for root: its host reduces every block */
    const struct dt_host_ranks *host_ranks; /* for each: which ranks are on which host */
    size_t bytes; /* of all data; for each: of one rank's block; at least one */

    /* dt_layout_make sets these */
    size_t chunks;
    /* bytes; the last ones may be smaller */
    size_t chunk;
    size_t share;
    size_t block;
    size_t segments;         /* frames of a block */
    size_t chunks_per_block; /* for each: chunks that a rank's block is divided into */
};

/* Completes c. most: the bytes that a chunk plus one share may have. */
void dt_layout_make(struct dt_layout *c, size_t most);

/* Bytes of all data. */
size_t dt_layout_whole(const struct dt_layout *c);
/* The number of contiguous ranges of bytes of which a share consists. */
uint32_t dt_layout_ranges(const struct dt_layout *c);
struct dt_range dt_layout_range(const struct dt_layout *c, size_t chunk, uint32_t leader,
                                uint32_t range);
/* Offsets of ranges and blocks if the share is stored contiguously. */
size_t dt_layout_range_at(const struct dt_layout *c, uint32_t range);
size_t dt_layout_block_at(const struct dt_layout *c, uint32_t host);
/* A host's block of a share, as bytes of the data. It may be empty. */
struct dt_range dt_layout_block(const struct dt_layout *c, size_t chunk, uint32_t leader,
                                uint32_t host);
/* For each: the local rank whose block the leader reduces for its own host, and the offset in that
 * block. */
uint32_t dt_layout_owner(const struct dt_layout *c, size_t chunk, uint32_t leader);
size_t dt_layout_offset(const struct dt_layout *c, size_t chunk);

/* What a leader sends to another: of every chunk, the segments that the receiver reduces (raw),
 * those that the sender has reduced (folded), both, or neither. The next chunk's segments to reduce
 * come before this chunk's results, so there is something to send while the other side reduces.
 * Segments are numbered from 0, chunk after chunk. */
enum { DT_LAYOUT_RAW = 1, DT_LAYOUT_FOLDED = 2 };

unsigned dt_layout_series(const struct dt_layout *c, uint32_t to);
/* Frames of the flow. If it carries no segments, one empty frame still tells the receiver that the
 * sender has entered the call. */
size_t dt_layout_frames(const struct dt_layout *c, uint32_t to);
/* Converts between a segment's number and its position in a flow of these series. */
size_t dt_layout_frame_of(const struct dt_layout *c, unsigned series, size_t segment,
                          bool is_folded);
size_t dt_layout_segment_of(const struct dt_layout *c, unsigned series, size_t frame,
                            bool *is_folded);

#endif
