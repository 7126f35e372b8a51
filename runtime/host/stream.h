/* Copies of what other ranks read next, or nobody soon.
 *
 * Their caches still hold what stood there before, and a plain store must take every line away from
 * them first. Between the caches of one cluster of cores that is fast; across clusters or sockets
 * it is many times slower than memory, and then it is better to write past the caches (non-temporal
 * stores), although the readers find nothing in a cache. Which it is depends on where the ranks
 * run, and that may change: so copies are made with plain stores and timed, now and then while that
 * is fast, and where it was slow, for a while after ever more bytes.
 *
 * What was written past the caches is in none, and the first plain store to it waits for memory
 * whatever the distance: times count when plain stores have gone once over all of a staging. */
#ifndef DT_HOST_STREAM_H
#define DT_HOST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_stream {    /* all 0: nothing is known */
    bool far;         /* plain stores are slow */
    unsigned slow;    /* so many more of the copies timed of late were slow than were fast */
    unsigned untimed; /* copies until the next is timed */
    uint64_t bytes;   /* copied since "far" has changed */
    uint64_t stays;   /* bytes for which "far" holds, or last did; 0: never, or long ago */
};

/* Like memcpy, in the way that is the faster one now. What is published after it is seen after it.
 */
void dt_stream_copy(struct dt_stream *s, void *dst, const void *src, size_t bytes);
/* Part of it: a copy of so many bytes, timed or not (0), was made. */
void dt_stream_learn(struct dt_stream *s, size_t bytes, uint64_t took_ns);
/* Like memcpy, past the caches. */
void dt_stream_past_caches(void *dst, const void *src, size_t bytes);
/* What was written past the caches before is seen before what is published after. It waits for
 * memory, and is therefore for the end of many copies. */
void dt_stream_settle(void);

#endif
