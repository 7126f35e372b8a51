#include "launcher/io/outfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/io/nonblock.h"

enum { WRITE_MAX = 256 * 1024 };

struct segment { /* the next n bytes of the queue are this owner's */
    void *owner;
    size_t n;
};

struct dt_outfd {
    struct dt_nonblock file;
    struct dt_outfd_events events;
    void *arg;
    struct dt_strbuf queue;
    size_t head; /* bytes of queue that are out already */
    struct segment *segments;
    size_t nsegments, segment_head, segment_cap;
    bool failed;
    bool polling;
    uv_prepare_t flush; /* writes what was added before the loop waits again */
    uv_poll_t poll;     /* waits while the other side is slow */
    int open_handles;
};

size_t dt_outfd_pending(const struct dt_outfd *o)
{
    return o->queue.len - o->head;
}

static void queue_clear(struct dt_outfd *o)
{
    dt_strbuf_free(&o->queue);
    o->head = 0;
    o->nsegments = o->segment_head = 0;
}

/* Tells the owners of the next n bytes, which are out (or dropped). */
static void settle(struct dt_outfd *o, size_t n)
{
    while (n > 0) {
        struct segment *s = &o->segments[o->segment_head];
        size_t part = n < s->n ? n : s->n;
        void *owner = s->owner;

        s->n -= part;
        n -= part;
        if (s->n == 0)
            o->segment_head++;
        if (owner)
            o->events.wrote(o->arg, owner, part);
    }
}

static void drop_settled(struct dt_outfd *o)
{
    size_t left = o->nsegments - o->segment_head;

    if (o->segment_head <= left)
        return;
    memmove(o->segments, o->segments + o->segment_head, left * sizeof *o->segments);
    o->nsegments = left;
    o->segment_head = 0;
}

/* What is out is dropped from the front only when it is the larger part: each byte moves once. Both
 * lists are shortened while they are in use: behind a slow reader they may never be empty. */
static void advance(struct dt_outfd *o, size_t n)
{
    o->head += n;
    settle(o, n);
    drop_settled(o);
    if (o->head == o->queue.len) {
        o->queue.len = o->head = 0;
        o->nsegments = o->segment_head = 0;
    } else if (o->head > o->queue.len / 2) {
        dt_strbuf_consume(&o->queue, o->head);
        o->head = 0;
    }
}

static void stop_waiting(struct dt_outfd *o)
{
    uv_prepare_stop(&o->flush);
    if (o->polling)
        uv_poll_stop(&o->poll);
    o->polling = false;
}

static void fail(struct dt_outfd *o, int error)
{
    o->failed = true;
    stop_waiting(o);
    advance(o, dt_outfd_pending(o));
    o->events.failed(o->arg, error);
}

static void on_writable(uv_poll_t *poll, int status, int events);

static void wait_writable(struct dt_outfd *o)
{
    if (!o->polling)
        o->polling = uv_poll_start(&o->poll, UV_READABLE, on_writable) == 0;
}

static void write_queue(struct dt_outfd *o)
{
    bool once = o->file.kind == DT_FD_SHARED && o->file.ready_fd >= 0;

    do {
        size_t n = dt_outfd_pending(o);
        ssize_t done =
            dt_nonblock_write(&o->file, o->queue.data + o->head, n < WRITE_MAX ? n : WRITE_MAX);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN && o->file.ready_fd >= 0) {
            wait_writable(o);
            return;
        }
        if (done < 0) {
            fail(o, errno);
            return;
        }
        advance(o, (size_t)done);
    } while (dt_outfd_pending(o) > 0 && !once && !o->failed);
    if (dt_outfd_pending(o) > 0) {
        wait_writable(o);
        return;
    }
    stop_waiting(o);
    o->events.drained(o->arg);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct dt_outfd *o = poll->data;

    (void)status; /* the write tells the error, with its number */
    (void)events;
    write_queue(o);
}

static void on_flush(uv_prepare_t *flush)
{
    struct dt_outfd *o = flush->data;

    uv_prepare_stop(flush);
    if (o->file.kind == DT_FD_SHARED && o->file.ready_fd >= 0)
        wait_writable(o);
    else
        write_queue(o);
}

struct dt_outfd *dt_outfd_open(uv_loop_t *loop, int fd, const struct dt_outfd_events *events,
                               void *arg)
{
    struct dt_outfd *o = dt_xcalloc(1, sizeof *o);

    o->events = *events;
    o->arg = arg;
    dt_nonblock_open(&o->file, fd, O_WRONLY);
    uv_prepare_init(loop, &o->flush);
    o->flush.data = o;
    o->open_handles = 1;
    if (o->file.ready_fd >= 0) {
        uv_poll_init(loop, &o->poll, o->file.ready_fd);
        o->poll.data = o;
        o->open_handles++;
    }
    return o;
}

static void add_segment(struct dt_outfd *o, size_t n, void *owner)
{
    struct segment *last = o->nsegments ? &o->segments[o->nsegments - 1] : NULL;

    if (last && o->nsegments > o->segment_head && last->owner == owner) {
        last->n += n;
        return;
    }
    if (o->nsegments == o->segment_cap) {
        o->segment_cap = o->segment_cap ? o->segment_cap * 2 : 64;
        o->segments = dt_xrealloc(o->segments, o->segment_cap, sizeof *o->segments);
    }
    o->segments[o->nsegments++] = (struct segment){ owner, n };
}

void dt_outfd_add(struct dt_outfd *o, const void *data, size_t n, void *owner)
{
    if (n == 0)
        return;
    if (o->failed) {
        if (owner)
            o->events.wrote(o->arg, owner, n);
        return;
    }
    dt_strbuf_add(&o->queue, data, n);
    add_segment(o, n, owner);
    if (!o->polling)
        uv_prepare_start(&o->flush, on_flush);
}

static void on_closed(uv_handle_t *handle)
{
    struct dt_outfd *o = handle->data;

    if (--o->open_handles > 0)
        return;
    dt_nonblock_close(&o->file);
    free(o->segments);
    free(o);
}

void dt_outfd_close(struct dt_outfd *o)
{
    if (!o)
        return;
    queue_clear(o);
    uv_close((uv_handle_t *)&o->flush, on_closed);
    if (o->file.ready_fd >= 0)
        uv_close((uv_handle_t *)&o->poll, on_closed);
}
