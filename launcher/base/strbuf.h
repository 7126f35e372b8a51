/* A growing byte buffer that always has a NUL after its len bytes. Zero-initialise it and free it
 * with dt_strbuf_free. */
#ifndef DT_BASE_STRBUF_H
#define DT_BASE_STRBUF_H

#include <stddef.h>

struct dt_strbuf {
    char *data; /* NULL while empty; dt_strbuf_text never returns NULL */
    size_t len;
    size_t cap;
};

void dt_strbuf_add(struct dt_strbuf *b, const void *data, size_t n);
void dt_strbuf_puts(struct dt_strbuf *b, const char *s);
void dt_strbuf_printf(struct dt_strbuf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void dt_strbuf_consume(struct dt_strbuf *b, size_t n); /* drops the first n bytes */
const char *dt_strbuf_text(const struct dt_strbuf *b);
char *dt_strbuf_take(struct dt_strbuf *b); /* for the caller to free; b is empty then */
void dt_strbuf_free(struct dt_strbuf *b);

#endif
