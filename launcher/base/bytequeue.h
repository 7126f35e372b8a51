/* A first-in first-out queue of bytes. Zero-initialise it and free it with dt_bytequeue_free.
 * Running out of memory ends the process (mem.h). */
#ifndef DT_BASE_BYTEQUEUE_H
#define DT_BASE_BYTEQUEUE_H

#include <stddef.h>

struct dt_bytequeue {
    char *data;
    size_t head; /* index of the first waiting byte */
    size_t len;  /* number of waiting bytes */
    size_t cap;
};

void dt_bytequeue_add(struct dt_bytequeue *q, const void *data, size_t n);
/* Returns len bytes, valid until the next dt_bytequeue_add. */
const char *dt_bytequeue_head(const struct dt_bytequeue *q);
void dt_bytequeue_consume(struct dt_bytequeue *q, size_t n); /* n at most len */
void dt_bytequeue_free(struct dt_bytequeue *q);

#endif
