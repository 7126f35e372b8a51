#include "launcher/io/backlog.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/mem.h"

enum {
    TOKENS = 32 * 1024,        /* with more pieces than this, new ones are merged */
    SAME_NS = 1000 * 1000,     /* pieces of one stream that arrive within this time are merged */
    KEPT_WHEN_EMPTY = 4 * 1024 /* bytes of memory that an empty stream keeps */
};

struct token {
    size_t stream;
    size_t n; /* 0: the end of the stream */
    struct timespec came;
};

struct stream {
    struct dt_bytequeue bytes;
    uint64_t last; /* position of its newest token; the first token ever has position 1 */
};

struct dt_backlog {
    struct token *tokens;
    size_t ntokens, head, cap;
    uint64_t gone;        /* number of tokens removed from the front of the array */
    struct stream *taken; /* the stream of the last piece taken, or NULL */
    size_t taken_n;       /* bytes of that piece, which stay in the queue until the next take */
    size_t nstreams;
    struct stream streams[];
};

struct dt_backlog *dt_backlog_create(size_t streams)
{
    struct dt_backlog *b = dt_xcalloc(1, sizeof *b + streams * sizeof b->streams[0]);

    b->nstreams = streams;
    return b;
}

bool dt_backlog_is_empty(const struct dt_backlog *b)
{
    return b->head == b->ntokens;
}

size_t dt_backlog_waiting(const struct dt_backlog *b, size_t stream)
{
    const struct stream *s = &b->streams[stream];

    return s->bytes.len - (s == b->taken ? b->taken_n : 0);
}

static void drop_tokens(struct dt_backlog *b)
{
    if (b->head <= b->ntokens / 2)
        return;
    b->ntokens -= b->head;
    b->gone += b->head;
    memmove(b->tokens, b->tokens + b->head, b->ntokens * sizeof *b->tokens);
    b->head = 0;
}

static void add_token(struct dt_backlog *b, const struct token *token)
{
    if (b->ntokens == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 64;
        b->tokens = dt_xrealloc(b->tokens, b->cap, sizeof *b->tokens);
    }
    b->tokens[b->ntokens++] = *token;
    b->streams[token->stream].last = b->gone + b->ntokens;
}

static int64_t between_ns(const struct timespec *a, const struct timespec *b)
{
    return (b->tv_sec - a->tv_sec) * INT64_C(1000000000) + b->tv_nsec - a->tv_nsec;
}

/* Returns the token that further bytes of the stream may join, or NULL. */
static struct token *token_to_join(struct dt_backlog *b, size_t stream, const struct timespec *now)
{
    uint64_t last = b->streams[stream].last;
    struct token *t;

    if (last <= b->gone + b->head)
        return NULL;
    t = &b->tokens[last - b->gone - 1];
    if (t->n == 0)
        return NULL;
    if (b->ntokens - b->head >= TOKENS)
        return t;
    return last == b->gone + b->ntokens && between_ns(&t->came, now) < SAME_NS ? t : NULL;
}

void dt_backlog_add(struct dt_backlog *b, size_t stream, const void *data, size_t n,
                    struct timespec now)
{
    struct token *t;

    if (n == 0)
        return;
    t = token_to_join(b, stream, &now);
    dt_bytequeue_add(&b->streams[stream].bytes, data, n);
    if (t)
        t->n += n;
    else
        add_token(b, &(struct token){ stream, n, now });
}

void dt_backlog_end(struct dt_backlog *b, size_t stream)
{
    add_token(b, &(struct token){ .stream = stream });
}

/* A stream without waiting bytes keeps little memory. */
static void drop_piece(struct dt_backlog *b)
{
    if (!b->taken)
        return;
    dt_bytequeue_consume(&b->taken->bytes, b->taken_n);
    if (b->taken->bytes.len == 0 && b->taken->bytes.cap > KEPT_WHEN_EMPTY)
        dt_bytequeue_free(&b->taken->bytes);
    b->taken = NULL;
}

bool dt_backlog_take(struct dt_backlog *b, size_t max, struct dt_backlog_piece *piece)
{
    struct token *t;
    struct stream *s;

    drop_piece(b);
    drop_tokens(b);
    if (dt_backlog_is_empty(b))
        return false;
    t = &b->tokens[b->head];
    s = &b->streams[t->stream];
    b->taken = s;
    *piece = (struct dt_backlog_piece){ .stream = t->stream, .came = t->came };
    piece->n = t->n < max ? t->n : max;
    if (piece->n > 0)
        piece->data = dt_bytequeue_head(&s->bytes);
    b->taken_n = piece->n;
    t->n -= piece->n;
    if (t->n == 0)
        b->head++;
    return true;
}

void dt_backlog_free(struct dt_backlog *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->nstreams; i++)
        dt_bytequeue_free(&b->streams[i].bytes);
    free(b->tokens);
    free(b);
}
