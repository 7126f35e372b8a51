/* The memory that ranks of a host share. The agent makes a memory file when the first rank of a
 * communicator asks for one (dt_mem_alloc), or a rank gives it the descriptor of a GPU's memory. It
 * hands either to all that want it, and forgets it: the memory lives as long as they have it
 * mapped. */
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
    uint32_t
        members; /* so many local ranks ask, in the same words, of what is given beside the giver */
    uint32_t giver; /* 0: the agent makes it; else the local rank + 1 of who gives it */
};

/* For this local rank. Returns a descriptor, which the caller closes, or -1 with errno. *number
 * tells the file from all others. */
int dt_segments_want(struct dt_segments *s, uint32_t local_rank,
                     const struct dt_segments_wanted *wanted, uint64_t *number);
/* From the giver, before others want it: keeps a copy of the descriptor. Returns 0, or -1 with
 * errno. */
int dt_segments_give(struct dt_segments *s, uint32_t local_rank,
                     const struct dt_segments_wanted *wanted, int fd);
/* The communicator is gone: what not all of its ranks have asked for goes, too. */
void dt_segments_forget(struct dt_segments *s, uint64_t comm);
/* What not all have asked for: for a communicator never more than a file, and a descriptor of each
 * of its ranks. */
size_t dt_segments_kept(const struct dt_segments *s);

#endif
