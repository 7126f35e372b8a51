/* Copies past the caches (non-temporal stores), for results that are larger than any cache. */
#ifndef DT_SHM_STREAM_H
#define DT_SHM_STREAM_H

#include <stddef.h>

/* Like memcpy. Data published afterwards may become visible earlier, until dt_stream_settle. */
void dt_stream_past_caches(void *dst, const void *src, size_t bytes);
/* Orders earlier non-temporal stores before later publications. It waits for memory, so call it
 * once after many copies. */
void dt_stream_settle(void);

#endif
