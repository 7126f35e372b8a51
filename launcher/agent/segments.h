/* The memory files of buffers that the ranks of a host share (dt_mem_alloc). The agent makes one
 * when the first rank of a communicator asks, hands it to all of them, and forgets it: it lives as
 * long as they have it mapped. */
#ifndef DT_AGENT_SEGMENTS_H
#define DT_AGENT_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

struct dt_segments;

struct dt_segments *dt_segments_create(uint32_t local_size);
/* Accepts NULL. */
void dt_segments_destroy(struct dt_segments *s);

struct dt_segments_wanted {
    uint64_t comm;
    uint64_t call; /* its number: what an earlier one has left behind is given up */
    uint64_t bytes;
    uint32_t members; /* so many local ranks ask, in the same words */
};

/* For this local rank. Returns a descriptor, which the caller closes, or -1 with errno. *number
 * tells the file from all others. */
int dt_segments_want(struct dt_segments *s, uint32_t local_rank,
                     const struct dt_segments_wanted *wanted, uint64_t *number);
/* The communicator is gone: what not all of its ranks have asked for goes, too. */
void dt_segments_forget(struct dt_segments *s, uint64_t comm);
/* Files that not all have asked for: never more than communicators. */
size_t dt_segments_kept(const struct dt_segments *s);

#endif
