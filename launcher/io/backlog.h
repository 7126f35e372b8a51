/* What several streams have sent and nobody has taken yet, in the order in which it came. Pure.
 *
 * Memory is bounded by the bytes, however small the pieces are in which they come: when very many
 * pieces wait, a new one joins the last piece of its stream, and only the order among streams
 * suffers. */
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
    size_t n; /* 0: the stream has ended, and may begin anew */
};

struct dt_backlog *dt_backlog_create(size_t streams);
void dt_backlog_add(struct dt_backlog *b, size_t stream, const void *data, size_t n,
                    struct timespec now);
void dt_backlog_end(struct dt_backlog *b, size_t stream);
/* The oldest piece, or its first max bytes; false: there is none. It lasts until the next
 * take. */
bool dt_backlog_take(struct dt_backlog *b, size_t max, struct dt_backlog_piece *piece);
bool dt_backlog_is_empty(const struct dt_backlog *b);
/* How much of the stream waits. */
size_t dt_backlog_waiting(const struct dt_backlog *b, size_t stream);
void dt_backlog_free(struct dt_backlog *b); /* accepts NULL */

#endif
