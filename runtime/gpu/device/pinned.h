/* Host memory that the GPU copies to and from by itself. To pin memory takes long: what is given
 * back is kept for the next call, up to a limit. For any thread. */
#ifndef DT_GPU_DEVICE_PINNED_H
#define DT_GPU_DEVICE_PINNED_H

#include <stddef.h>

/* At least so many bytes, in whatever context is current: what is reserved for this owner, if that
 * is enough. NULL: the driver gives no more. */
void *dt_pinned_take(size_t bytes, const void *owner);
/* NULL is accepted. */
void dt_pinned_give(void *memory);

/* From dt_pinned_hold on until dt_pinned_let_go no memory is freed, however much there is: to free
 * it waits for all streams, also for one that is held until a call has been made. What is too much
 * then is freed when memory is next given back. Waits for what is being freed. */
void dt_pinned_hold(void);
void dt_pinned_let_go(void);

/* Makes so much now, for an owner that never takes more than one piece of memory at a time, and for
 * no other until it is released. Where the driver gives none, it is for dt_pinned_take to tell. */
void dt_pinned_reserve(size_t bytes, const void *owner);
void dt_pinned_release(const void *owner);

#endif
