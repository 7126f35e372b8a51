/* One chunk of a reduction among the ranks of a host. It is divided into blocks, one for each rank,
 * which that rank reduces for all ranks that get the result. */
#ifndef DT_SHM_CHUNK_H
#define DT_SHM_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/shm/shm.h"

/* Bytes of a result that are copied again while they are in the L1 cache. */
enum { DT_CHUNK_L1 = 8 * 1024 };

#define DT_CHUNK_EVERYBODY UINT32_MAX

struct dt_chunk {
    const uint8_t *in;
    uint8_t *out; /* NULL: this rank gets no result */
    size_t bytes;
    size_t block; /* bytes of every rank's block but the last ones */
    bool small;   /* the data are so small that each rank reduces all of them */
    bool huge;    /* the result exceeds the caches, and what it overwrites is not in them */
    int divisor;
    uint32_t root; /* the rank that gets the result, or DT_CHUNK_EVERYBODY */
    const struct dt_call *call;
    size_t at;          /* offset in all data */
    const size_t *done; /* by local rank: its blocks of chunks before this offset are at their
                           destination; NULL: none is */
    size_t folded;      /* this rank's results of chunks before this offset are in out */
};

/* Cuts a chunk of at most "most" bytes out of all data, beginning at "at". */
struct dt_chunk dt_chunk_cut(const struct dt_shm *s, const struct dt_chunk *whole, size_t at,
                             size_t most);
size_t dt_chunk_block_at(const struct dt_chunk *c, uint32_t local_rank);
size_t dt_chunk_block_bytes(const struct dt_chunk *c, uint32_t local_rank);
/* Whether the rank's block is at its destination. */
bool dt_chunk_is_placed(const struct dt_chunk *c, uint32_t local_rank);
/* Whether that local rank gets the result. */
bool dt_chunk_is_for(const struct dt_chunk *c, uint32_t local_rank);

/* Reduces bytes of all ranks' data at src. dst may be one of them. */
void dt_chunk_fold(const struct dt_shm *s, const struct dt_chunk *c, void *dst,
                   const void *const *src, size_t bytes);
/* Copies a part of the result to its final place. */
void dt_chunk_keep(const struct dt_chunk *c, void *out, const void *result, size_t bytes);

#endif
