/* Memory segments that ranks of a host share. The agent creates a memory file when the first rank
 * of a communicator asks for one (dt_mem_alloc), or receives the descriptor of a GPU's memory from
 * a rank. It hands either to every rank that asks, and then closes it: the memory exists as long as
 * a rank has it mapped. */
#ifndef DT_AGENT_RANKLINK_SEGMENTS_H
#define DT_AGENT_RANKLINK_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

struct dt_segments;

struct dt_segments *dt_segments_create(uint32_t local_size);
/* Accepts NULL. */
void dt_segments_destroy(struct dt_segments *s);

struct dt_segments_wanted {
    uint64_t comm;
    uint64_t call; /* number of the call; a later one discards what an earlier one left */
    uint64_t bytes;
    uint32_t members; /* how many local ranks, besides the giver, make the same request */
    uint32_t giver;   /* 0: the agent creates it; else the giver's local rank + 1 */
};

/* Serves this local rank. Returns a descriptor, which the caller closes, or -1 with errno. *number
 * identifies the file. */
int dt_segments_want(struct dt_segments *s, uint32_t local_rank,
                     const struct dt_segments_wanted *wanted, uint64_t *number);
/* The giver calls this before others ask. Keeps a copy of the descriptor. Returns 0, or -1 with
 * errno. */
int dt_segments_give(struct dt_segments *s, uint32_t local_rank,
                     const struct dt_segments_wanted *wanted, int fd);
/* The communicator is gone: closes the descriptors that some of its ranks did not ask for. */
void dt_segments_forget(struct dt_segments *s, uint64_t comm);
/* Returns how many descriptors wait for ranks to ask: for each communicator at most one file, and
 * one descriptor of each of its ranks. */
size_t dt_segments_kept(const struct dt_segments *s);

#endif
