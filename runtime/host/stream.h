/* Copies of what other ranks read next, or nobody soon.
 *
 * Their caches still hold what stood there before, and a plain store must take every line away from
 * them first. Between the caches of one cluster of cores that is fast; across clusters or sockets
 * it is many times slower than memory, and then it is better to write past the caches (non-temporal
 * stores), although the readers find nothing in a cache. Which it is depends on where the ranks
 * run, and that may change: so now and then a copy is made with plain stores, and timed. */
#ifndef DT_HOST_STREAM_H
#define DT_HOST_STREAM_H

#include <stdbool.h>
#include <stddef.h>

struct dt_stream { /* all 0: nothing is known */
    bool far;      /* plain stores are slow */
    unsigned left; /* copies until the next is timed */
};

/* Like memcpy, in the way that is the faster one now. What is published after it is seen after it.
 */
void dt_stream_copy(struct dt_stream *s, void *dst, const void *src, size_t bytes);
/* Like memcpy, past the caches. */
void dt_stream_past_caches(void *dst, const void *src, size_t bytes);
/* What was written past the caches before is seen before what is published after. It waits for
 * memory, and is therefore for the end of many copies. */
void dt_stream_settle(void);

#endif
