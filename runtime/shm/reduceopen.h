/* Reductions in which ranks read each other's data directly and write the results directly: in
 * segments that all ranks have mapped (segment.h), or in any memory, with copies by the kernel
 * (cma.h). In the first round every rank says what it can offer, and stages nothing if it offers
 * something. From all offers all ranks draw the same conclusion. */
#ifndef DT_SHM_REDUCEOPEN_H
#define DT_SHM_REDUCEOPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/shm/chunk.h"
#include "runtime/shm/segment.h"

/* What a rank offers. A rank that gets no result still has a buffer for one. */
struct dt_reduceopen_terms {
    struct dt_place in;
    struct dt_place out;
    uint64_t in_at; /* addresses for the kernel; 0: the kernel is not to copy */
    uint64_t out_at;
};

struct dt_reduceopen_end {
    bool over;     /* the call is complete on all ranks */
    bool quiet;    /* no rank writes to this rank's memory any more, however the call ends */
    bool staged;   /* all ranks have staged the first chunk; false: perhaps not */
    size_t *done;  /* n entries, provided by the caller: as in dt_chunk */
    size_t folded; /* like folded of dt_chunk */
};

/* Whether a message of this size is worth reading directly from mapped memory. small: as in
 * dt_chunk. */
bool dt_reduceopen_may_map(const struct dt_shm *s, size_t bytes, bool small);

struct dt_reduceopen_terms dt_reduceopen_offer(struct dt_shm *s, const struct dt_chunk *whole);
bool dt_reduceopen_offers(const struct dt_reduceopen_terms *mine);
/* Called in the round in which all ranks have stated their offers. Reduces if one of the algorithms
 * can be used. step: bytes of a chunk. */
dt_result_t dt_reduceopen(struct dt_shm *s, const struct dt_chunk *whole,
                          const struct dt_reduceopen_terms *mine, size_t step,
                          struct dt_reduceopen_end *end);
/* Called if the call fails after this rank has offered memory. Returns when no rank writes to it
 * any more. */
void dt_reduceopen_leave(struct dt_shm *s, const struct dt_chunk *whole,
                         const struct dt_reduceopen_terms *mine);

#endif
