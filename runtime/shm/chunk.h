/* A part of a reduction among the ranks of a host, and the slices of it, of which every rank folds
 * one for all that are to have the result. */
#ifndef DT_SHM_CHUNK_H
#define DT_SHM_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/shm/shm.h"

/* Bytes of a result that are stored again from the first cache. */
enum { DT_CHUNK_BLOCK = 8 * 1024 };

#define DT_CHUNK_EVERYBODY UINT32_MAX

struct dt_chunk {
    const uint8_t *in;
    uint8_t *out; /* NULL: this rank is to have no result */
    size_t bytes;
    size_t slice; /* bytes of every rank's slice but the last ones */
    bool few;     /* the whole is: everybody folds all of it */
    bool huge;    /* no cache keeps the whole result, nor has it what stood there */
    int divisor;
    uint32_t root; /* who is to have the result, or DT_CHUNK_EVERYBODY */
    const struct dt_call *call;
    size_t at;          /* in the whole */
    const size_t *done; /* by local rank: its slices of chunks before this are where they are to go;
                           NULL: nobody's are */
    size_t folded;      /* this rank's slices of chunks before this have their result in out */
};

/* The bytes of the whole from "at" on, at most so many. */
struct dt_chunk dt_chunk_cut(const struct dt_shm *s, const struct dt_chunk *whole, size_t at,
                             size_t most);
size_t dt_chunk_slice_at(const struct dt_chunk *c, uint32_t local_rank);
size_t dt_chunk_slice_bytes(const struct dt_chunk *c, uint32_t local_rank);
/* Whether its slice is where it is to go. */
bool dt_chunk_has_gone(const struct dt_chunk *c, uint32_t local_rank);
/* Whether that local rank is to have the result. */
bool dt_chunk_is_for(const struct dt_chunk *c, uint32_t local_rank);

/* Folds a part of all ranks' data, bytes long, that stand at src; dst may be one of these. */
void dt_chunk_fold(const struct dt_shm *s, const struct dt_chunk *c, void *dst,
                   const void *const *src, size_t bytes);
/* Brings a part of the result to where it stays. */
void dt_chunk_keep(const struct dt_chunk *c, void *out, const void *result, size_t bytes);

#endif
