/* When the driver may be asked for pinned memory and streams. Some drivers give these only once the
 * GPU has finished all its work. While that work waits for a call of this library, and so for other
 * ranks, a thread that asked might wait for a call that waits for this thread.
 *
 * For any thread. */
#ifndef DT_GPU_DEVICE_PROVISION_H
#define DT_GPU_DEVICE_PROVISION_H

#include <stdbool.h>

struct dt_comm;

/* Returns false if the driver must not be asked now: then the caller does without, or with less.
 * Otherwise dt_gpu_provision_end follows. */
bool dt_gpu_provision_begin(void);
void dt_gpu_provision_end(void);

/* Before work of a call on c that may wait for other ranks is queued, and after it is over. The
 * first waits for threads that are asking, but no longer once c has been stopped, since then the
 * work waits for no rank. */
void dt_gpu_provision_forbid(const struct dt_comm *c);
void dt_gpu_provision_allow(void);

#endif
