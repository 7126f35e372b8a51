/* A first-in first-out queue of bytes. Zero-initialise it; free with _free. Memory that runs out
 * ends the process (mem.h). */
#ifndef DT_BASE_BYTEQUEUE_H
#define DT_BASE_BYTEQUEUE_H

#include <stddef.h>

struct dt_bytequeue {
    char *data;
    size_t head; /* the first byte that waits */
    size_t len;  /* bytes that wait */
    size_t cap;
};

void dt_bytequeue_add(struct dt_bytequeue *q, const void *data, size_t n);
const char *
dt_bytequeue_head(const struct dt_bytequeue *q); /* len bytes, valid until the next _add */
void dt_bytequeue_consume(struct dt_bytequeue *q, size_t n); /* n at most len */
void dt_bytequeue_free(struct dt_bytequeue *q);

#endif
