/* Work in a library that may never end. A thread of its own does it, and is abandoned if it takes
 * too long. */
#ifndef DT_GPU_DEVICE_ERRAND_H
#define DT_GPU_DEVICE_ERRAND_H

#include <stdbool.h>
#include <stddef.h>

struct dt_errand;

/* Starts a thread that does the work on a copy of these bytes. Returns NULL if memory or threads
 * run out. undo (may be NULL): called by the thread if the errand has been abandoned when the work
 * is done. */
struct dt_errand *dt_errand_start(void (*work)(void *copy), void (*undo)(void *copy),
                                  const void *arg, size_t bytes);
/* The copy once the work is done, else NULL. It lives until dt_errand_end. */
void *dt_errand_result(struct dt_errand *e);
/* Waits at most this long. Returns whether the work is done. */
bool dt_errand_await(struct dt_errand *e, unsigned ms);
/* Returns true if its thread will undo and free it, false if the work is done after all. */
bool dt_errand_abandon(struct dt_errand *e);
/* Drops the errand, whether or not it is done. Accepts NULL. */
void dt_errand_end(struct dt_errand *e);

#endif
