/* Memory of a program that all ranks of the host have mapped (dt_mem_alloc), so that one can tell
 * the others where its data stand.
 *
 * A segment is a sealed memory file with a part for every local rank of a communicator. Who frees
 * its part says so in the file, gives its pages back, and never names it again; but it keeps its
 * view of the others' parts until all have freed theirs. So whoever is told of a place finds it,
 * without a word about who has what, as long as the one who tells may use it himself. The segments
 * of all ranks are good for every communicator, those of another for that one.
 *
 * Any thread may call all of it. */
#ifndef DT_SHM_SEGMENT_H
#define DT_SHM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The least bytes that are worth being used where they stand. */
enum { DT_SEGMENT_LEAST = 2 * 1024 };

struct dt_place {
    uint64_t segment; /* its number; 0: in no memory that others have */
    uint64_t at;
};

/* What a segment is among its ranks. */
struct dt_segment_kind {
    uint64_t comm; /* 0: of all ranks of the job */
    uint64_t number;
    uint32_t me;
    uint32_t n;
    size_t bytes; /* of every rank's part */
};

/* Bytes of the file; 0: more than memory. */
size_t dt_segment_total(uint32_t n, size_t bytes);
/* Maps it, with all pages of this rank's part. n == 1: fresh memory, of which others have no need;
 * fd is not used. Returns the part, which is zero and begins at a page, or NULL with errno. */
void *dt_segment_open(const struct dt_segment_kind *kind, int fd);
/* Once all ranks have opened it: makes the rest of the view. */
void dt_segment_settle(const void *part);
/* Some rank has not: forgets it altogether. */
void dt_segment_discard(void *part);
/* Frees the part. False: it is none, or has been freed. */
bool dt_segment_free(void *part);
/* Forgets those of which all ranks have freed their parts. */
void dt_segment_sweep(void);

/* The place of bytes at p for the ranks of comm on this host. */
struct dt_place dt_segment_place(uint64_t comm, const void *p, size_t bytes);
/* Between these two a found place stays, whatever the other threads of this process free. */
void dt_segment_hold(void);
void dt_segment_release(void);
/* Where another rank's place is here. */
uint8_t *dt_segment_find(struct dt_place place);

#endif
