/* How data are cut that hosts fold with each other, by one rank of each or by several, its leaders:
 * into chunks, every chunk into a slice for each lane, and every slice into a part for each host,
 * which folds it. And in which order a lane sends another what is to be folded, and what has been.
 * Pure.
 *
 * What comes of it is for all ranks (all-reduce), for one of them (reduce), or each rank's own
 * block (reduce-scatter). In the last case a chunk has the same piece of as many blocks of each
 * host as there are leaders: that of local rank "turn * width + lane" is lane's, so that where
 * every rank is a lane each folds what it is to have. */
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
    uint32_t width;                 /* leaders of every host */
    uint32_t home;                  /* for root: its host, */
    bool collects;                  /* and whether that folds every part */
    const struct dt_roster *roster; /* for each: who is where */
    size_t bytes;                   /* of all; for each: of a block; at least one */

    /* by dt_layout_make */
    size_t chunks;
    size_t chunk; /* bytes, of all but the last ones; likewise: */
    size_t slice;
    size_t part;
    size_t segments; /* frames that a part takes */
    size_t pieces;   /* for each: of a block */
};

/* Completes c: most bytes that a chunk with a slice more may have. */
void dt_layout_make(struct dt_layout *c, size_t most);

/* Bytes of all data. */
size_t dt_layout_whole(const struct dt_layout *c);
/* A slice consists of so many runs of bytes that follow each other in the data. */
uint32_t dt_layout_runs(const struct dt_layout *c);
struct dt_span dt_layout_run(const struct dt_layout *c, size_t chunk, uint32_t lane, uint32_t run);
/* Where the runs of a slice and the parts in it begin, when they stand by themselves. */
size_t dt_layout_run_at(const struct dt_layout *c, uint32_t run);
size_t dt_layout_part_at(const struct dt_layout *c, uint32_t host);
/* A host's part of a slice, as bytes of the data; it may be empty. */
struct dt_span dt_layout_part(const struct dt_layout *c, size_t chunk, uint32_t lane,
                              uint32_t host);
/* For each: whose block the lane folds for its own host then, by local rank; and which bytes of it.
 */
uint32_t dt_layout_taker(const struct dt_layout *c, size_t chunk, uint32_t lane);
size_t dt_layout_piece_at(const struct dt_layout *c, size_t chunk);

/* What a lane sends another: of every chunk segments that the receiver folds, and segments that the
 * sender has folded; one of the two, or neither. Before the latter come those to be folded of the
 * next chunk, so that there are some to send while the other side folds. Segments are numbered from
 * 0, those of a chunk after those of the one before. */
enum { DT_LAYOUT_RAW = 1, DT_LAYOUT_FOLDED = 2 };

unsigned dt_layout_series(const struct dt_layout *c, uint32_t to);
/* Frames of the flow. An empty one tells a rank that only gives that the other has come. */
size_t dt_layout_frames(const struct dt_layout *c, uint32_t to);
/* Where in a flow of these series a segment stands; and which segment stands there. */
size_t dt_layout_frame_of(const struct dt_layout *c, unsigned series, size_t segment,
                          bool is_folded);
size_t dt_layout_segment_of(const struct dt_layout *c, unsigned series, size_t frame,
                            bool *is_folded);

#endif
