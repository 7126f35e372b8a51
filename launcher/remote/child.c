#include "launcher/remote/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/uvloop.h"

enum { LAST_READ_MS = 1 }; /* time for the last read; 0 could expire before the loop polls */

struct dt_child {
    uv_process_t process;
    uv_pipe_t channel;
    uv_pipe_t errors;
    uv_timer_t timer;
    struct dt_child_events events;
    void *arg;
    struct dt_child_end end;
    int handles; /* number of handles that are still open */
    int streams; /* how many of channel and errors have not ended */
    unsigned grace_ms;
    bool has_process;
    bool begun;     /* its streams are being read */
    bool exited;    /* has exited, or never started */
    bool finishing; /* the last handles are being closed */
    bool last_read; /* the grace period is over: reads what its streams hold, then closes them */
    /* bytes whose write has not been reported as ended; libuv's own count drops them earlier */
    size_t pending;
};

struct write {
    uv_write_t req;
    size_t bytes;
    char data[];
};

static void on_child_handle_closed(uv_handle_t *handle)
{
    struct dt_child *c = handle->data;

    if (--c->handles > 0)
        return;
    c->events.ended(c->arg, &c->end);
    free(c);
}

static void close_handle(void *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_child_handle_closed);
}

static void finish_child(struct dt_child *c)
{
    if (c->finishing)
        return;
    c->finishing = true;
    close_handle(&c->channel);
    close_handle(&c->errors);
    if (c->has_process)
        close_handle(&c->process);
    close_handle(&c->timer);
}

/* The grace period is over: the process has exited while something else holds its streams, or it
 * outlives its streams. Or dtrun itself did not run for that long and has not read the last output
 * yet, so this polls once more. */
static void on_grace_over(uv_timer_t *timer)
{
    struct dt_child *c = timer->data;

    if (!c->exited) {
        uv_process_kill(&c->process, SIGKILL);
    } else if (c->last_read) {
        finish_child(c);
    } else {
        c->last_read = true;
        uv_timer_start(&c->timer, on_grace_over, LAST_READ_MS, 0);
    }
}

static void finish_if_ended(struct dt_child *c)
{
    if (c->finishing || !c->begun) /* begin_child still uses the timer */
        return;
    c->last_read = false;
    if (c->exited && c->streams == 0)
        finish_child(c);
    else if (c->exited || uv_is_closing((uv_handle_t *)&c->channel))
        uv_timer_start(&c->timer, on_grace_over, c->grace_ms, 0);
}

static void on_process_exit(uv_process_t *process, int64_t code, int signo)
{
    struct dt_child *c = process->data;

    c->exited = true;
    c->end.code = code;
    c->end.signo = signo;
    finish_if_ended(c);
}

static void end_stream(struct dt_child *c, uv_stream_t *stream)
{
    if (uv_is_closing((uv_handle_t *)stream))
        return;
    close_handle(stream);
    c->streams--;
    finish_if_ended(c);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dt_child *c = stream->data;

    if (n < 0)
        end_stream(c, stream);
    else if (n > 0 && stream == (uv_stream_t *)&c->channel)
        c->events.data(c->arg, buf->base, (size_t)n);
    else if (n > 0)
        c->events.noise(c->arg, buf->base, (size_t)n);
}

static void begin_child(uv_timer_t *timer)
{
    struct dt_child *c = timer->data;

    c->begun = true;
    if (c->end.spawn_error) {
        finish_child(c);
        return;
    }
    uv_read_start((uv_stream_t *)&c->errors, dt_uvloop_give_buffer, on_read);
    if (!uv_is_closing((uv_handle_t *)&c->channel))
        uv_read_start((uv_stream_t *)&c->channel, dt_uvloop_give_buffer, on_read);
    finish_if_ended(c);
}

static void init_handles(struct dt_child *c, uv_loop_t *loop)
{
    uv_pipe_init(loop, &c->channel, 0);
    uv_pipe_init(loop, &c->errors, 0);
    uv_timer_init(loop, &c->timer);
    c->channel.data = c->errors.data = c->timer.data = c->process.data = c;
    c->handles = 3;
    c->streams = 2;
}

/* Returns 0 or libuv's error code. One socket serves both directions, so the child sees the end of
 * its input exactly when its output has no reader any more. */
static int start_process(struct dt_child *c, uv_loop_t *loop, const char *const argv[],
                         const char *const env[])
{
    int pair[2];
    int rc;
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_INHERIT_FD },
        { .flags = UV_INHERIT_FD },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->errors },
    };
    uv_process_options_t options = {
        .exit_cb = on_process_exit,
        .file = argv[0],
        .args = (char **)(uintptr_t)argv,
        .env = (char **)(uintptr_t)env,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = 3,
        .stdio = stdio,
    };

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return uv_translate_sys_error(errno);
    stdio[0].data.fd = stdio[1].data.fd = pair[1];
    rc = uv_pipe_open(&c->channel, pair[0]);
    if (rc) {
        close(pair[0]);
    } else {
        c->handles++; /* uv_spawn initialises the process handle even if it fails */
        c->has_process = true;
        rc = uv_spawn(loop, &c->process, &options);
    }
    close(pair[1]);
    return rc;
}

const char *dt_child_remedy(int spawn_error, const char *otherwise)
{
    switch (spawn_error) {
    case UV_EMFILE:
        return "allow dtrun more open files (ulimit -n)";
    case UV_EAGAIN:
        return "allow more processes (ulimit -u)";
    case UV_ENFILE:
    case UV_ENOMEM:
        return "this machine has run out of memory or open files";
    default:
        return otherwise;
    }
}

void dt_child_explain_code(struct dt_error *why, const char *what, int code)
{
    if (code > DT_EXIT_SIGNAL && code < DT_EXIT_SIGNAL + NSIG)
        dt_error_set(why, "agent: %s was killed by signal %d (%s)", what, code - DT_EXIT_SIGNAL,
                     strsignal(code - DT_EXIT_SIGNAL));
    else
        dt_error_set(why, "agent: %s exited with code %d", what, code);
}

struct dt_child *dt_child_open(uv_loop_t *loop, const char *const argv[], const char *const env[],
                               unsigned grace_ms, const struct dt_child_events *events, void *arg)
{
    struct dt_child *c = dt_xcalloc(1, sizeof *c);

    c->events = *events;
    c->arg = arg;
    c->grace_ms = grace_ms;
    init_handles(c, loop);
    c->end.spawn_error = start_process(c, loop, argv, env);
    c->exited = c->end.spawn_error != 0;
    uv_timer_start(&c->timer, begin_child, 0, 0);
    return c;
}

static void on_written(uv_write_t *req, int status)
{
    struct dt_child *c = req->handle->data;

    /* A child that no longer reads is about to end, and on_process_exit reports how. */
    (void)status;
    c->pending -= ((struct write *)req->data)->bytes;
    free(req->data);
    if (!c->finishing && !c->end.closed && c->pending == 0)
        c->events.drained(c->arg);
}

void dt_child_write(struct dt_child *c, const void *data, size_t n)
{
    struct write *w;
    uv_buf_t buf;

    if (n == 0 || c->end.spawn_error || uv_is_closing((uv_handle_t *)&c->channel))
        return;
    w = dt_xcalloc(1, sizeof *w + n);
    memcpy(w->data, data, n);
    w->req.data = w;
    w->bytes = n;
    buf = uv_buf_init(w->data, (unsigned)n);
    if (uv_write(&w->req, (uv_stream_t *)&c->channel, &buf, 1, on_written))
        free(w);
    else
        c->pending += n;
}

size_t dt_child_pending(const struct dt_child *c)
{
    return c->pending;
}

int dt_child_pid(const struct dt_child *c)
{
    return c->exited ? 0 : c->process.pid;
}

void dt_child_close(struct dt_child *c)
{
    if (c->end.closed || c->finishing)
        return;
    c->end.closed = !c->exited;
    if (!c->end.spawn_error)
        end_stream(c, (uv_stream_t *)&c->channel);
}
