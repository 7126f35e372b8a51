/* Reductions of data that other ranks of the host take from where they stand, and to which they
 * write the result: in segments that all have mapped (segment.h), or in any memory, which the
 * kernel copies from and to (cma.h). Every rank says in the first round what it offers, and stages
 * nothing if it offers something; by what all have said all decide alike. */
#ifndef DT_SHM_REDUCEOPEN_H
#define DT_SHM_REDUCEOPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/shm/chunk.h"
#include "runtime/shm/segment.h"

/* What a rank says. One that is to have no result has a place for it. */
struct dt_reduceopen_terms {
    struct dt_place in;
    struct dt_place out;
    uint64_t in_at; /* addresses, for the kernel; 0: it is not to copy anything */
    uint64_t out_at;
};

struct dt_reduceopen_end {
    bool over;     /* everybody has the result */
    bool quiet;    /* nobody writes to this rank's memory any more, whatever comes of the call */
    bool staged;   /* else: all ranks have staged the first chunk; or none is known to have */
    size_t *done;  /* n of them, which the caller has: as in dt_chunk */
    size_t folded; /* likewise */
};

/* Whether so many bytes may be taken from where they are mapped. */
bool dt_reduceopen_may_map(const struct dt_shm *s, size_t bytes, bool few);
/* Whether all other ranks' memory can be reached by the kernel. */
bool dt_reduceopen_reaches_all(struct dt_shm *s);

struct dt_reduceopen_terms dt_reduceopen_offer(struct dt_shm *s, const struct dt_chunk *whole);
bool dt_reduceopen_offers(const struct dt_reduceopen_terms *mine);
/* In the round in which all have said what they offer: reduces, if one of these algorithms can.
 * step: bytes of a chunk. */
dt_result_t dt_reduceopen(struct dt_shm *s, const struct dt_chunk *whole,
                          const struct dt_reduceopen_terms *mine, size_t step,
                          struct dt_reduceopen_end *end);
/* For a rank that has offered something, and whose call fails: returns when nobody writes to its
 * memory any more. */
void dt_reduceopen_leave(struct dt_shm *s, const struct dt_chunk *whole,
                         const struct dt_reduceopen_terms *mine);

#endif
