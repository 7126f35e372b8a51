/* The memory that is measured: the host's, or once a GPU has been asked for, that GPU's. */
#ifndef DT_CMD_PERF_MEMORY_H
#define DT_CMD_PERF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { DT_PERF_MEMORY_TEXT = 160 };

/* Chooses the GPU that this rank sees first. False: text tells why there is none. */
bool dt_perf_memory_use_gpu(char text[DT_PERF_MEMORY_TEXT]);
bool dt_perf_memory_is_gpu(void);
/* "0000:3b:00 NVIDIA H100", as nccl-tests names a device, or "host memory". */
const char *dt_perf_memory_name(void);

/* Zeros, at the beginning of a page. NULL: there is not so much. */
void *dt_perf_memory_new(size_t bytes);
void dt_perf_memory_free(void *p);
void dt_perf_memory_clear(void *p, size_t bytes);
/* Within it. Of a GPU's it is only asked for, on the default stream. */
void dt_perf_memory_copy(void *to, const void *from, size_t bytes);
/* From, or to, the host's memory. */
void dt_perf_memory_put(void *p, const void *host, size_t bytes);
void dt_perf_memory_get(void *host, const void *p, size_t bytes);

#endif
