#include "launcher/io/stdinpump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/io/filereader.h"
#include "launcher/io/nonblock.h"
#include "runtime/wire/frame.h"

enum {
    CHUNK = DT_FRAME_PAYLOAD_MAX - 64, /* leaves room for the message's other fields */
    BACKGROUND_MS = 500,               /* how often to check a terminal in the background */
};

struct dt_stdinpump {
    struct dt_nonblock file;
    struct dt_stdinpump_events events;
    void *arg;
    size_t credit;
    bool ended;
    bool polling;
    struct dt_filereader *reader; /* for input that is always ready, such as a file; else NULL */
    uv_poll_t poll;               /* for all other input */
    uv_timer_t later;             /* while dtrun is in the background of the terminal */
    int open_handles;
};

static void on_ready(uv_poll_t *poll, int status, int events);

static void rest(struct dt_stdinpump *p)
{
    if (p->polling)
        uv_poll_stop(&p->poll);
    p->polling = false;
}

static void start(struct dt_stdinpump *p)
{
    if (p->polling || p->ended || p->credit == 0 || uv_is_active((uv_handle_t *)&p->later))
        return;
    if (p->reader) {
        dt_filereader_start(p->reader, p->credit < CHUNK ? p->credit : CHUNK);
        return;
    }
    p->polling = true;
    uv_poll_start(&p->poll, UV_READABLE, on_ready);
}

static void on_later(uv_timer_t *timer)
{
    start(timer->data);
}

static void wait_for_foreground(struct dt_stdinpump *p)
{
    rest(p);
    uv_timer_start(&p->later, on_later, BACKGROUND_MS, 0);
}

/* tcgetpgrp fails if fd is no terminal, or not dtrun's controlling terminal. Then reading it cannot
 * stop dtrun. */
static bool in_background(const struct dt_stdinpump *p)
{
    pid_t foreground = tcgetpgrp(p->file.fd);

    return foreground > 0 && foreground != getpgrp();
}

/* A terminal that has hung up, and a descriptor that is not open for reading, as under nohup, have
 * no more input. */
static bool is_end(const struct dt_stdinpump *p, int error)
{
    return error == 0 || error == EBADF || (error == EIO && p->file.kind != DT_FD_FILE);
}

static void end_input(struct dt_stdinpump *p, int error)
{
    p->ended = true;
    rest(p);
    if (is_end(p, error))
        p->events.eof(p->arg);
    else
        p->events.failed(p->arg, error);
}

static void pass_on(struct dt_stdinpump *p, const char *data, size_t n)
{
    p->credit -= n;
    if (p->credit == 0)
        rest(p);
    p->events.data(p->arg, data, n);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    static char chunk[CHUNK]; /* not on the stack, which may be small */
    struct dt_stdinpump *p = poll->data;
    ssize_t n;
    int error;

    (void)status;
    (void)events;
    if (in_background(p)) {
        wait_for_foreground(p);
        return;
    }
    n = dt_nonblock_read(&p->file, chunk, p->credit < CHUNK ? p->credit : CHUNK);
    error = n < 0 ? errno : 0;
    if (error == EAGAIN || error == EINTR)
        return;
    if (error == EIO && tcgetpgrp(p->file.fd) > 0)
        wait_for_foreground(p); /* dtrun went into the background after the check above */
    else if (n <= 0)
        end_input(p, error);
    else
        pass_on(p, chunk, (size_t)n);
}

static size_t on_file_data(void *arg, const char *data, size_t n, int error)
{
    struct dt_stdinpump *p = arg;

    if (p->credit == 0) /* it was withdrawn while the file was read */
        return 0;
    if (n == 0) {
        end_input(p, error);
        return 0;
    }
    n = n < p->credit ? n : p->credit;
    pass_on(p, data, n);
    start(p);
    return n;
}

struct dt_stdinpump *dt_stdinpump_open(uv_loop_t *loop, int fd,
                                       const struct dt_stdinpump_events *events, void *arg)
{
    struct dt_stdinpump *p = dt_xcalloc(1, sizeof *p);

    p->events = *events;
    p->arg = arg;
    dt_nonblock_open(&p->file, fd, O_RDONLY);
    uv_timer_init(loop, &p->later);
    p->later.data = p;
    p->open_handles = 1;
    if (p->file.ready_fd >= 0) {
        uv_poll_init(loop, &p->poll, p->file.ready_fd);
        p->poll.data = p;
        p->open_handles++;
    } else {
        p->reader = dt_filereader_open(loop, fd, on_file_data, p);
    }
    return p;
}

void dt_stdinpump_credit(struct dt_stdinpump *p, size_t n)
{
    p->credit += n;
    start(p);
}

void dt_stdinpump_hold(struct dt_stdinpump *p)
{
    p->credit = 0;
    rest(p);
}

static void on_pump_closed(uv_handle_t *handle)
{
    struct dt_stdinpump *p = handle->data;

    if (--p->open_handles > 0)
        return;
    dt_nonblock_close(&p->file);
    free(p);
}

void dt_stdinpump_close(struct dt_stdinpump *p)
{
    if (!p)
        return;
    dt_filereader_close(p->reader);
    uv_close((uv_handle_t *)&p->later, on_pump_closed);
    if (p->file.ready_fd >= 0)
        uv_close((uv_handle_t *)&p->poll, on_pump_closed);
}
