#include "launcher/agent/stdinfeed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

struct dt_stdinfeed {
    uv_poll_t poll;
    struct dt_channel *channel;
    uint32_t rank;
    int fd; /* -1: closed, by us or by the rank */
    bool eof;
    bool polling;
    bool closed; /* libuv has let go of poll */
    bool destroyed;
    struct dt_strbuf waiting;
};

static void maybe_free(struct dt_stdinfeed *f)
{
    if (!f->destroyed || !f->closed)
        return;
    dt_strbuf_free(&f->waiting);
    free(f);
}

static void on_closed(uv_handle_t *handle)
{
    struct dt_stdinfeed *f = handle->data;

    f->closed = true;
    maybe_free(f);
}

static void close_pipe(struct dt_stdinfeed *f)
{
    uv_close((uv_handle_t *)&f->poll, on_closed);
    close(f->fd);
    f->fd = -1;
}

static void give_credit(struct dt_stdinfeed *f, size_t n)
{
    struct dt_msg_credit m = { .rank = f->rank, .fd = 0, .bytes = (uint32_t)n };

    dt_strbuf_consume(&f->waiting, n);
    if (n)
        dt_channel_send(f->channel, DT_MSG_STDIN_CREDIT, &m);
}

static void flush(struct dt_stdinfeed *f);

static void on_writable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* write tells */
    (void)events;
    flush(poll->data);
}

static void flush(struct dt_stdinfeed *f)
{
    size_t done = 0;
    ssize_t n = 0;

    while (f->fd >= 0 && done < f->waiting.len) {
        n = write(f->fd, f->waiting.data + done, f->waiting.len - done);
        if (n > 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            close_pipe(f); /* the rank reads no more */
    }
    give_credit(f, f->fd < 0 ? f->waiting.len : done);
    if (f->fd >= 0 && f->eof && f->waiting.len == 0)
        close_pipe(f);
    if (f->fd >= 0 && f->polling != (f->waiting.len > 0)) {
        f->polling = f->waiting.len > 0;
        if (f->polling)
            uv_poll_start(&f->poll, UV_WRITABLE, on_writable);
        else
            uv_poll_stop(&f->poll);
    }
}

struct dt_stdinfeed *dt_stdinfeed_create(uv_loop_t *loop, struct dt_channel *channel, uint32_t rank,
                                         int fd)
{
    struct dt_stdinfeed *f = dt_xcalloc(1, sizeof *f);

    f->channel = channel;
    f->rank = rank;
    f->fd = fd;
    uv_poll_init(loop, &f->poll, fd);
    f->poll.data = f;
    return f;
}

bool dt_stdinfeed_put(struct dt_stdinfeed *f, const void *data, size_t n)
{
    /* Twice: a window sent before a restart may still have been under way. */
    if (n > 2 * (size_t)DT_STDIN_CREDIT - f->waiting.len)
        return false;
    if (!f->eof)
        dt_strbuf_add(&f->waiting, data, n);
    flush(f);
    return true;
}

void dt_stdinfeed_eof(struct dt_stdinfeed *f)
{
    f->eof = true;
    flush(f);
}

void dt_stdinfeed_destroy(struct dt_stdinfeed *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close_pipe(f);
    f->destroyed = true;
    maybe_free(f);
}
