/* How hosts divide data that they reduce together, with one or several leaders each: into chunks,
 * each chunk into a slice for each leader, and each slice into a part for each host, which reduces
 * it. Also the order in which a leader sends another what is to be reduced and what has been
 * reduced. Pure.
 *
 * The result is for all ranks (all-reduce), for one rank (reduce), or for each rank its own block
 * (reduce-scatter). In the last case a chunk contains the same piece of as many blocks of each host
 * as there are leaders: leader "lane" handles the block of local rank "turn * width + lane". If
 * every rank is a leader, each reduces its own block. */
#ifndef DT_COLL_LAYOUT_H
#define DT_COLL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/blocks.h"
#include "runtime/coll/roster.h"

enum dt_layout_for { DT_LAYOUT_FOR_ALL, DT_LAYOUT_FOR_ROOT, DT_LAYOUT_FOR_EACH };

struct dt_layout {
    enum dt_layout_for whom;
    uint32_t hosts;
    uint32_t width;                 /* leaders of each host */
    uint32_t home;                  /* for root: its host, */
    bool collects;                  /* and whether that host reduces every part */
    const struct dt_roster *roster; /* for each: which ranks are on which host */
    size_t bytes;                   /* of all data; for each: of one block; at least one */

    /* dt_layout_make sets these */
    size_t chunks;
    size_t chunk; /* bytes of all but the last ones; likewise: */
    size_t slice;
    size_t part;
    size_t segments; /* frames of a part */
    size_t pieces;   /* for each: pieces of a block */
};

/* Completes c. most: the bytes that a chunk plus one slice may have. */
void dt_layout_make(struct dt_layout *c, size_t most);

/* Bytes of all data. */
size_t dt_layout_whole(const struct dt_layout *c);
/* A slice consists of so many contiguous runs of bytes. */
uint32_t dt_layout_runs(const struct dt_layout *c);
struct dt_span dt_layout_run(const struct dt_layout *c, size_t chunk, uint32_t lane, uint32_t run);
/* Offsets of runs and parts if the slice is stored contiguously. */
size_t dt_layout_run_at(const struct dt_layout *c, uint32_t run);
size_t dt_layout_part_at(const struct dt_layout *c, uint32_t host);
/* A host's part of a slice, as bytes of the data. It may be empty. */
struct dt_span dt_layout_part(const struct dt_layout *c, size_t chunk, uint32_t lane,
                              uint32_t host);
/* For each: the local rank whose block the leader reduces for its own host, and the offset in that
 * block. */
uint32_t dt_layout_taker(const struct dt_layout *c, size_t chunk, uint32_t lane);
size_t dt_layout_piece_at(const struct dt_layout *c, size_t chunk);

/* What a leader sends to another: of every chunk the segments that the receiver reduces and the
 * segments that the sender has reduced; one of the two, or neither. The next chunk's segments to
 * reduce come before this chunk's results, so there is something to send while the other side
 * reduces. Segments are numbered from 0, chunk after chunk. */
enum { DT_LAYOUT_RAW = 1, DT_LAYOUT_FOLDED = 2 };

unsigned dt_layout_series(const struct dt_layout *c, uint32_t to);
/* Frames of the flow. An empty one tells a rank that only sends that the other has entered the
 * call. */
size_t dt_layout_frames(const struct dt_layout *c, uint32_t to);
/* Converts between a segment's number and its position in a flow of these series. */
size_t dt_layout_frame_of(const struct dt_layout *c, unsigned series, size_t segment,
                          bool is_folded);
size_t dt_layout_segment_of(const struct dt_layout *c, unsigned series, size_t frame,
                            bool *is_folded);

#endif
