/* Copies past the caches (non-temporal stores), for results that are larger than any cache. */
#ifndef DT_SHM_STREAM_H
#define DT_SHM_STREAM_H

#include <stddef.h>

/* Like memcpy. What is published after it may be seen before it, until dt_stream_settle. */
void dt_stream_past_caches(void *dst, const void *src, size_t bytes);
/* Orders what was written past the caches before what is published after. Waits for memory, so call
 * it once, after many copies. */
void dt_stream_settle(void);

#endif
