#include "launcher/agent/io/stdinfeed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/mem.h"

/* A dying rank closes its pipe before the kernel tells the agent of its death. */
enum { DYING_MS = 1000 };

struct reader {
    uv_poll_t poll; /* its data points to this struct */
    struct dt_stdinfeed *feed;
    int fd;    /* -1: closed, by the agent or by the rank */
    size_t at; /* how many of the waiting bytes the pipe has taken */
    bool polling;
};

struct dt_stdinfeed {
    uv_loop_t *loop;
    struct dt_channel *channel;
    uint32_t generation;
    bool begun;
    bool eof;
    bool destroyed;
    uint32_t handles;            /* handles that libuv still uses */
    struct dt_bytequeue waiting; /* bytes that not every reader has taken yet */
    uv_timer_t dying; /* runs while the last reader may be dying; points to this struct */
    uint32_t n;
    struct reader readers[];
};

static void maybe_free(struct dt_stdinfeed *f)
{
    if (!f->destroyed || f->handles)
        return;
    dt_bytequeue_free(&f->waiting);
    free(f);
}

static void on_handle_closed(struct dt_stdinfeed *f)
{
    f->handles--;
    maybe_free(f);
}

static void on_poll_closed(uv_handle_t *handle)
{
    on_handle_closed(((struct reader *)handle->data)->feed);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void close_pipe(struct reader *r)
{
    uv_close((uv_handle_t *)&r->poll, on_poll_closed);
    close(r->fd);
    r->fd = -1;
}

/* Drops the bytes that every reader has taken, and returns them as credit. While the last reader
 * may be dying it does nothing: the launcher would send more, which restarted ranks would miss. */
static void return_credit(struct dt_stdinfeed *f)
{
    struct dt_msg_stdin_credit m = { .generation = f->generation };
    size_t taken = f->waiting.len;

    for (uint32_t i = 0; i < f->n; i++) {
        if (f->readers[i].fd >= 0 && f->readers[i].at < taken)
            taken = f->readers[i].at;
    }
    if (taken == 0 || uv_is_active((uv_handle_t *)&f->dying))
        return;
    dt_bytequeue_consume(&f->waiting, taken);
    for (uint32_t i = 0; i < f->n; i++)
        f->readers[i].at -= f->readers[i].fd >= 0 ? taken : 0;
    m.bytes = (uint32_t)taken;
    dt_channel_send(f->channel, DT_MSG_STDIN_CREDIT, &m);
}

static void on_dying_over(uv_timer_t *timer)
{
    return_credit(timer->data);
}

/* The rank does not read any more. */
static void on_broken(struct reader *r)
{
    struct dt_stdinfeed *f = r->feed;

    close_pipe(r);
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->readers[i].fd >= 0)
            return;
    }
    uv_timer_start(&f->dying, on_dying_over, DYING_MS, 0);
}

static void feed_reader(struct reader *r);

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct reader *r = poll->data;

    (void)status; /* write reports the error */
    (void)events;
    feed_reader(r);
    return_credit(r->feed);
}

static void set_polling(struct reader *r, bool on)
{
    if (r->polling == on)
        return;
    r->polling = on;
    if (on)
        uv_poll_start(&r->poll, UV_WRITABLE, on_writable);
    else
        uv_poll_stop(&r->poll);
}

/* Writes as many waiting bytes as the pipe takes. */
static void feed_reader(struct reader *r)
{
    const struct dt_bytequeue *waiting = &r->feed->waiting;

    while (r->fd >= 0 && r->at < waiting->len) {
        ssize_t n = write(r->fd, dt_bytequeue_head(waiting) + r->at, waiting->len - r->at);

        if (n > 0)
            r->at += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            on_broken(r);
    }
    if (r->fd >= 0 && r->feed->eof && r->at == waiting->len)
        close_pipe(r);
    if (r->fd >= 0)
        set_polling(r, r->at < waiting->len);
}

static void feed_all(struct dt_stdinfeed *f)
{
    if (!f->begun)
        return;
    for (uint32_t i = 0; i < f->n; i++)
        feed_reader(&f->readers[i]);
    return_credit(f);
}

struct dt_stdinfeed *dt_stdinfeed_create(uv_loop_t *loop, struct dt_channel *channel,
                                         uint32_t generation, uint32_t readers)
{
    struct dt_stdinfeed *f = dt_xcalloc(1, sizeof *f + readers * sizeof f->readers[0]);

    f->loop = loop;
    f->channel = channel;
    f->generation = generation;
    uv_timer_init(loop, &f->dying);
    f->dying.data = f;
    f->handles++;
    return f;
}

void dt_stdinfeed_add(struct dt_stdinfeed *f, int fd)
{
    struct reader *r = &f->readers[f->n++];

    *r = (struct reader){ .feed = f, .fd = fd };
    uv_poll_init(f->loop, &r->poll, fd);
    r->poll.data = r;
    f->handles++;
}

void dt_stdinfeed_begin(struct dt_stdinfeed *f)
{
    f->begun = true;
    feed_all(f);
}

bool dt_stdinfeed_put(struct dt_stdinfeed *f, const void *data, size_t n)
{
    if (n > (size_t)DT_STDIN_CREDIT - f->waiting.len)
        return false;
    if (!f->eof)
        dt_bytequeue_add(&f->waiting, data, n);
    feed_all(f);
    return true;
}

void dt_stdinfeed_eof(struct dt_stdinfeed *f)
{
    f->eof = true;
    feed_all(f);
}

void dt_stdinfeed_destroy(struct dt_stdinfeed *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->readers[i].fd >= 0)
            close_pipe(&f->readers[i]);
    }
    uv_close((uv_handle_t *)&f->dying, on_timer_closed);
    f->destroyed = true;
    maybe_free(f);
}
