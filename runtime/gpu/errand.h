/* Work of a library that may never end: a thread of its own does it, and is left to itself if it
 * takes too long. */
#ifndef DT_GPU_ERRAND_H
#define DT_GPU_ERRAND_H

#include <stdbool.h>
#include <stddef.h>

struct dt_errand;

/* Has a thread do work on a copy of these bytes. NULL: there is no memory, or no thread. undo: what
 * the thread does once the work is done, if the errand has been abandoned; NULL: nothing. */
struct dt_errand *dt_errand_start(void (*work)(void *copy), void (*undo)(void *copy),
                                  const void *arg, size_t bytes);
/* The copy, once the work is done; NULL before. It lasts until dt_errand_end. */
void *dt_errand_result(struct dt_errand *e);
/* Waits for it, for so long at most. True: it is done. */
bool dt_errand_await(struct dt_errand *e, unsigned ms);
/* True: its thread will undo it, and free it. False: it is done after all. */
bool dt_errand_abandon(struct dt_errand *e);
/* Forgets it, done or not. Accepts NULL. */
void dt_errand_end(struct dt_errand *e);

#endif
