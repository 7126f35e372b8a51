/* A first-in first-out queue of bytes. Zero-initialise it; free with _free. */
#ifndef DT_REMOTE_OUTBOX_H
#define DT_REMOTE_OUTBOX_H

#include <stddef.h>

struct dt_outbox {
    char *data;
    size_t head; /* the first byte that waits */
    size_t len;  /* how many wait */
    size_t cap;
};

void dt_outbox_add(struct dt_outbox *o, const void *data, size_t n);
const char *dt_outbox_head(const struct dt_outbox *o); /* len bytes, valid until the next _add */
void dt_outbox_consume(struct dt_outbox *o, size_t n); /* n at most len */
void dt_outbox_free(struct dt_outbox *o);

#endif
