/* Splits a stream of bytes into lines. Pure.
 *
 * A line ends with "\n", "\r" (progress bars) or "\r\n". Whole lines are released as soon as they
 * are complete. An unfinished line is held until it ends, the stream ends, or it grows beyond max;
 * then it is released as a piece. So no input is too long, and no byte is lost. */
#ifndef DT_IO_LINEBUF_H
#define DT_IO_LINEBUF_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

enum dt_piece_flags {
    DT_PIECE_BEGINS = 1, /* a line begins here and needs a label */
    DT_PIECE_ENDS = 2,   /* the piece ends with the end of its line */
    DT_PIECE_LF = 4,     /* the piece is only the "\n" of a "\r\n" whose "\r" was released before */
};

typedef void (*dt_linebuf_f)(void *arg, const char *text, size_t n, unsigned flags);

struct dt_linebuf {
    size_t max; /* length of the longest unfinished line that is held */
    struct dt_strbuf held;
    bool inside; /* the last piece did not end its line */
    bool cr;     /* the last piece ended with "\r" */
};

void dt_linebuf_feed(struct dt_linebuf *b, const char *data, size_t n, dt_linebuf_f emit,
                     void *arg);
/* Releases an unfinished line as it is. Later bytes continue it. */
void dt_linebuf_show(struct dt_linebuf *b, dt_linebuf_f emit, void *arg);
/* The stream has ended: releases an unfinished line. The buffer can then serve a new stream. */
void dt_linebuf_end(struct dt_linebuf *b, dt_linebuf_f emit, void *arg);
void dt_linebuf_free(struct dt_linebuf *b);

#endif
