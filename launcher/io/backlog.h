/* Bytes that several streams have sent and that still wait to be taken, in order of arrival. Pure.
 *
 * Memory stays proportional to the waiting bytes, however small the pieces are: if too many pieces
 * wait, a new one joins the last piece of its stream. Then only the order among streams suffers. */
#ifndef DT_IO_BACKLOG_H
#define DT_IO_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct dt_backlog;

struct dt_backlog_piece {
    size_t stream;
    struct timespec came;
    const char *data;
    size_t n; /* 0: the stream has ended; it may start again */
};

struct dt_backlog *dt_backlog_create(size_t streams);
void dt_backlog_add(struct dt_backlog *b, size_t stream, const void *data, size_t n,
                    struct timespec now);
void dt_backlog_end(struct dt_backlog *b, size_t stream);
/* Takes the oldest piece, or its first max bytes. Returns false if there is none. The piece is
 * valid until the next call. */
bool dt_backlog_take(struct dt_backlog *b, size_t max, struct dt_backlog_piece *piece);
bool dt_backlog_is_empty(const struct dt_backlog *b);
/* Returns the number of bytes of the stream that wait. */
size_t dt_backlog_waiting(const struct dt_backlog *b, size_t stream);
void dt_backlog_free(struct dt_backlog *b); /* accepts NULL */

#endif
