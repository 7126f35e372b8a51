/* Host memory that the GPU copies to and from by itself. To pin memory takes long: what is given
 * back is kept for the next call, up to a limit. For any thread. */
#ifndef DT_GPU_PINNED_H
#define DT_GPU_PINNED_H

#include <stddef.h>

/* At least so many bytes, in whatever context is current. NULL: the driver gives no more. */
void *dt_pinned_take(size_t bytes);
/* NULL is accepted. */
void dt_pinned_give(void *memory);

#endif
