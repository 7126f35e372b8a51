#include "launcher/base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

static void reserve(struct dt_strbuf *b, size_t n)
{
    size_t need = b->len + n + 1;
    size_t cap = b->cap ? b->cap : 64;

    if (need <= b->cap)
        return;
    while (cap < need)
        cap *= 2;
    b->data = dt_xrealloc(b->data, cap, 1);
    b->cap = cap;
}

void dt_strbuf_add(struct dt_strbuf *b, const void *data, size_t n)
{
    reserve(b, n);
    if (n)
        memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void dt_strbuf_puts(struct dt_strbuf *b, const char *s)
{
    dt_strbuf_add(b, s, strlen(s));
}

void dt_strbuf_printf(struct dt_strbuf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    reserve(b, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void dt_strbuf_consume(struct dt_strbuf *b, size_t n)
{
    if (n >= b->len) {
        b->len = 0;
    } else {
        memmove(b->data, b->data + n, b->len - n);
        b->len -= n;
    }
    if (b->data)
        b->data[b->len] = '\0';
}

const char *dt_strbuf_text(const struct dt_strbuf *b)
{
    return b->data ? b->data : "";
}

char *dt_strbuf_take(struct dt_strbuf *b)
{
    char *text;

    dt_strbuf_puts(b, "");
    text = b->data;
    *b = (struct dt_strbuf){ 0 };
    return text;
}

void dt_strbuf_free(struct dt_strbuf *b)
{
    free(b->data);
    *b = (struct dt_strbuf){ 0 };
}
