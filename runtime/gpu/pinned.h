/* Host memory that the GPU copies to and from by itself. To pin memory takes long: what is given
 * back is kept for the next call, up to a limit. For any thread. */
#ifndef DT_GPU_PINNED_H
#define DT_GPU_PINNED_H

#include <stddef.h>

/* At least so many bytes, in whatever context is current: what is reserved for this owner, if that
 * is enough. NULL: the driver gives no more. */
void *dt_pinned_take(size_t bytes, const void *owner);
/* NULL is accepted. */
void dt_pinned_give(void *memory);

/* Makes so much now, for an owner that never takes more than one piece of memory at a time, and for
 * no other until it is released. Where the driver gives none, it is for dt_pinned_take to tell. */
void dt_pinned_reserve(size_t bytes, const void *owner);
void dt_pinned_release(const void *owner);

#endif
