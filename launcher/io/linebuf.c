#include "launcher/io/linebuf.h"

#include <string.h>

static void release(struct dt_linebuf *b, const char *text, size_t n, dt_linebuf_f emit, void *arg)
{
    unsigned flags = b->inside ? 0 : DT_PIECE_BEGINS;
    char last = text[n - 1];

    if (last == '\n' || last == '\r')
        flags |= DT_PIECE_ENDS;
    b->inside = !(flags & DT_PIECE_ENDS);
    b->cr = last == '\r';
    emit(arg, text, n, flags);
}

/* Returns the length of the first line with its end, or 0 if the data do not contain its end. */
static size_t line_length(const char *data, size_t n)
{
    const char *lf = memchr(data, '\n', n);
    const char *cr = memchr(data, '\r', lf ? (size_t)(lf - data) : n);

    if (cr && cr + 1 != lf)
        return (size_t)(cr - data) + 1;
    return lf ? (size_t)(lf - data) + 1 : 0;
}

void dt_linebuf_show(struct dt_linebuf *b, dt_linebuf_f emit, void *arg)
{
    if (b->held.len > 0)
        release(b, b->held.data, b->held.len, emit, arg);
    b->held.len = 0;
}

static void hold(struct dt_linebuf *b, const char *data, size_t n, dt_linebuf_f emit, void *arg)
{
    dt_strbuf_add(&b->held, data, n);
    if (b->held.len > b->max)
        dt_linebuf_show(b, emit, arg);
}

/* The first line is complete. Releases it together with the held beginning, or straight from the
 * input. */
static void complete(struct dt_linebuf *b, const char *data, size_t n, dt_linebuf_f emit, void *arg)
{
    if (b->held.len == 0) {
        release(b, data, n, emit, arg);
        return;
    }
    dt_strbuf_add(&b->held, data, n);
    dt_linebuf_show(b, emit, arg);
}

void dt_linebuf_feed(struct dt_linebuf *b, const char *data, size_t n, dt_linebuf_f emit, void *arg)
{
    if (n > 0 && b->cr) {
        b->cr = false;
        if (data[0] == '\n') {
            emit(arg, data++, 1, DT_PIECE_ENDS | DT_PIECE_LF);
            n--;
        }
    }
    while (n > 0) {
        size_t line = line_length(data, n);

        if (line == 0) {
            hold(b, data, n, emit, arg);
            return;
        }
        complete(b, data, line, emit, arg);
        data += line;
        n -= line;
        if (n > 0)
            b->cr = false;
    }
}

void dt_linebuf_end(struct dt_linebuf *b, dt_linebuf_f emit, void *arg)
{
    dt_linebuf_show(b, emit, arg);
    b->inside = false;
    b->cr = false;
}

void dt_linebuf_free(struct dt_linebuf *b)
{
    dt_strbuf_free(&b->held);
}
