#include "launcher/io/outfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/io/filewriter.h"
#include "launcher/io/nonblock.h"

enum { WRITE_MAX = 256 * 1024 };

struct dt_outfd {
    struct dt_nonblock file;
    struct dt_outfd_events events;
    void *arg;
    struct dt_bytequeue queue;
    struct dt_filewriter *writer; /* of a regular file: gets the queue before the loop waits */
    struct dt_filewriter_file *written;
    bool failed;
    uint64_t moved_ns; /* as dt_outfd_moved_ns */
    int unread;        /* as dt_nonblock_unread, when it was last asked or began to wait */
    bool polling;
    uv_prepare_t flush; /* before the loop waits again, writes what was added */
    uv_poll_t poll;     /* active while the reader is slow */
    int open_handles;
};

size_t dt_outfd_pending(const struct dt_outfd *o)
{
    return o->queue.len + (o->written ? dt_filewriter_pending(o->written) : 0);
}

uint64_t dt_outfd_moved_ns(struct dt_outfd *o)
{
    int unread = dt_nonblock_unread(&o->file);

    if (unread >= 0 && unread < o->unread)
        o->moved_ns = dt_now_ns();
    o->unread = unread;
    return o->moved_ns;
}

static void note_written(struct dt_outfd *o)
{
    o->moved_ns = dt_now_ns();
    o->events.wrote(o->arg);
}

static void stop_waiting(struct dt_outfd *o)
{
    uv_prepare_stop(&o->flush);
    if (o->polling)
        uv_poll_stop(&o->poll);
    o->polling = false;
}

static void fail_outfd(struct dt_outfd *o, int error)
{
    o->failed = true;
    stop_waiting(o);
    dt_bytequeue_free(&o->queue);
    o->events.failed(o->arg, error);
}

static void on_writable(uv_poll_t *poll, int status, int events);

/* ready_fd is readable when the file is writable. */
static void wait_writable(struct dt_outfd *o)
{
    o->unread = dt_nonblock_unread(&o->file);
    if (!o->polling)
        o->polling = uv_poll_start(&o->poll, UV_READABLE, on_writable) == 0;
}

static void write_queue(struct dt_outfd *o)
{
    /* A second write could block. */
    bool once = o->file.kind == DT_FD_SHARED && o->file.ready_fd >= 0;

    do {
        size_t n = dt_outfd_pending(o);
        ssize_t done = dt_nonblock_write(&o->file, dt_bytequeue_head(&o->queue),
                                         n < WRITE_MAX ? n : WRITE_MAX);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN && o->file.ready_fd >= 0) {
            wait_writable(o);
            return;
        }
        if (done < 0) {
            fail_outfd(o, errno);
            return;
        }
        dt_bytequeue_consume(&o->queue, (size_t)done);
        note_written(o);
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

    (void)status; /* the write itself returns the error, with its number */
    (void)events;
    write_queue(o);
}

/* Other processes may append to a file, too, so label and line go to the writer together. */
static void pass_to_writer(struct dt_outfd *o)
{
    dt_filewriter_add(o->written, dt_bytequeue_head(&o->queue), o->queue.len);
    dt_bytequeue_consume(&o->queue, o->queue.len);
}

static void on_flush(uv_prepare_t *flush)
{
    struct dt_outfd *o = flush->data;

    uv_prepare_stop(flush);
    if (o->written)
        pass_to_writer(o);
    else if (o->file.kind == DT_FD_SHARED && o->file.ready_fd >= 0)
        wait_writable(o);
    else
        write_queue(o);
}

static void on_file_written(void *arg, size_t n, int error)
{
    struct dt_outfd *o = arg;

    (void)n;
    if (error) {
        fail_outfd(o, error);
        return;
    }
    note_written(o);
    if (dt_outfd_pending(o) == 0)
        o->events.drained(o->arg);
}

static void open_file(struct dt_outfd *o, uv_loop_t *loop)
{
    if (o->file.kind != DT_FD_FILE)
        return;
    o->writer = dt_filewriter_open(loop);
    o->written = dt_filewriter_file(o->writer, o->file.fd, on_file_written, o);
}

struct dt_outfd *dt_outfd_open(uv_loop_t *loop, int fd, bool lines,
                               const struct dt_outfd_events *events, void *arg)
{
    struct dt_outfd *o = dt_xcalloc(1, sizeof *o);

    o->events = *events;
    o->arg = arg;
    dt_nonblock_open(&o->file, fd, O_WRONLY);
    o->file.lines = lines;
    open_file(o, loop);
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

void dt_outfd_add(struct dt_outfd *o, const void *data, size_t n)
{
    if (n == 0 || o->failed)
        return;
    if (dt_outfd_pending(o) == 0)
        o->moved_ns = dt_now_ns();
    dt_bytequeue_add(&o->queue, data, n);
    if (!o->polling)
        uv_prepare_start(&o->flush, on_flush);
}

static void on_outfd_closed(uv_handle_t *handle)
{
    struct dt_outfd *o = handle->data;

    if (--o->open_handles > 0)
        return;
    dt_nonblock_close(&o->file);
    dt_bytequeue_free(&o->queue);
    free(o);
}

void dt_outfd_close(struct dt_outfd *o)
{
    if (!o)
        return;
    dt_filewriter_close(o->writer);
    uv_close((uv_handle_t *)&o->flush, on_outfd_closed);
    if (o->file.ready_fd >= 0)
        uv_close((uv_handle_t *)&o->poll, on_outfd_closed);
}
