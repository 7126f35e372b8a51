/* Memory of the program that all ranks of a host have mapped (dt_mem_alloc), so that a rank can
 * tell the others where its data are.
 *
 * A segment is a sealed memory file with a block for each local rank of a communicator. A rank that
 * frees its block notes that in the file, frees the pages, and never names the block again. It
 * keeps its mapping of the other blocks until all ranks have freed theirs. So a rank can find every
 * place that another rank may still use, without any further message. A segment that all ranks of
 * the job share serves every communicator, any other only its own.
 *
 * Any thread may call all functions. */
#ifndef DT_SHM_SEGMENT_H
#define DT_SHM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smaller data are not worth using in place. */
enum { DT_SEGMENT_LEAST = 2 * 1024 };

struct dt_place {
    uint64_t segment; /* number of the segment; 0: the memory is not shared */
    uint64_t at;
};

/* What identifies a kind of segment. */
struct dt_segment_kind {
    uint64_t comm; /* 0: all ranks of the job */
    uint64_t number;
    uint32_t me;
    uint32_t n;
    size_t bytes; /* of each rank's block */
};

/* Returns the size of the file in bytes, or 0 if it would exceed the address space. */
size_t dt_segment_total(uint32_t n, size_t bytes);
/* Maps a segment, and allocates all pages of this rank's block. n == 1: maps fresh memory that no
 * other rank needs, without fd. Returns the block, zeroed and page-aligned, or NULL with errno. */
void *dt_segment_open(const struct dt_segment_kind *kind, int fd);
/* Called when all ranks have opened it: maps the pages of the other blocks, too. */
void dt_segment_populate(const void *block);
/* Called when a rank could not open it: unmaps it. */
void dt_segment_discard(void *block);
/* Frees the block. False: it is not a block, or was freed. */
bool dt_segment_free(void *block);
/* Unmaps segments of which all ranks have freed their blocks. */
void dt_segment_sweep(void);

/* Returns the place of the bytes at p, for the ranks of comm on this host. */
struct dt_place dt_segment_place(uint64_t comm, const void *p, size_t bytes);
/* Between these two, a place that was found stays mapped, whatever other threads of this process
 * free. */
void dt_segment_hold(void);
void dt_segment_release(void);
/* Returns the address of another rank's place in this process, or NULL. */
uint8_t *dt_segment_find(struct dt_place place);

#endif
