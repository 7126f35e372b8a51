/* The memory whose use is measured: the host's, or that of a GPU after one was chosen. */
#ifndef DT_CMD_PERF_MEMORY_H
#define DT_CMD_PERF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { DT_PERF_MEMORY_TEXT = 384 };

/* Chooses the first GPU that this rank sees. Returns false, with the reason in text, if there is
 * none. */
bool dt_perf_memory_use_gpu(char text[DT_PERF_MEMORY_TEXT]);
bool dt_perf_memory_is_gpu(void);
/* Returns "0000:3b:00 NVIDIA H100", as nccl-tests names a device, or "host memory". */
const char *dt_perf_memory_name(void);

/* Returns zeroed memory that begins at a page, or NULL if there is not enough. */
void *dt_perf_memory_new(size_t bytes);
void dt_perf_memory_free(void *p);
void dt_perf_memory_clear(void *p, size_t bytes);
/* Copies within the memory. On a GPU it only enqueues the copy, on the default stream. */
void dt_perf_memory_copy(void *to, const void *from, size_t bytes);
/* dt_perf_memory_put copies from host memory, dt_perf_memory_get to it. */
void dt_perf_memory_put(void *p, const void *host, size_t bytes);
void dt_perf_memory_get(void *host, const void *p, size_t bytes);

#endif
