#include "launcher/agent/io/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/agent/io/pipewriter.h"
#include "launcher/agent/io/quiet.h"
#include "launcher/agent/sweep/look.h"
#include "launcher/base/mem.h"
#include "runtime/wire/frame.h"

enum {
    STREAMS = 2,                          /* of a rank: stdout and stderr */
    CHUNK = DT_FRAME_PAYLOAD_MAX - 4 - 1, /* leaves room for rank and stream */
    LOOK_MS = DT_QUIET_MS / 4,            /* between two checks whether streams are quiet */
    TERMINAL_MAX = 64 * 1024,             /* a terminal holds less than this */
};

struct stream {
    uv_poll_t poll; /* its data points to this struct */
    struct dt_relay *owner;
    uint32_t rank;
    uint8_t number; /* 1 or 2 */
    int fd;         /* -1: not open */
    bool is_terminal;
    bool reading;
    uint32_t credit;
    int left; /* the most bytes until the end once that is known, else -1 */
    struct dt_quiet quiet;
};

struct dt_relay {
    uv_loop_t *loop;
    /* Runs while a stream is undecided (quiet.h). Its data points to this struct. */
    uv_timer_t timer;
    struct dt_look *look; /* for a writer of looked_at; NULL: none is under way */
    struct stream *looked_at;
    uint64_t looked_due_ns; /* its quiet.due_ns then; another one: it was read since */
    struct dt_channel *channel;
    void (*ended)(void *arg);
    void *arg;
    bool finishing;
    bool reported; /* the ended event was called */
    const struct dt_u32s *numbers;
    uint32_t n;       /* number of streams */
    uint32_t open;    /* number of open streams */
    uint32_t handles; /* handles that libuv still uses; the timer's is the last */
    struct stream streams[];
};

static void let_go(struct dt_relay *r)
{
    if (--r->handles == 0)
        free(r);
}

static void on_stream_closed(uv_handle_t *handle)
{
    let_go(((struct stream *)handle->data)->owner);
}

static void on_relay_timer_closed(uv_handle_t *handle)
{
    let_go(handle->data);
}

static void close_stream(struct stream *s)
{
    uv_close((uv_handle_t *)&s->poll, on_stream_closed);
    close(s->fd);
    s->fd = -1;
    s->owner->open--;
}

static void maybe_ended(struct dt_relay *r)
{
    if (!r->finishing || r->open || r->reported)
        return;
    r->reported = true;
    r->ended(r->arg);
}

static void end_stream(struct stream *s)
{
    struct dt_msg_output_eof m = { s->rank, s->number };

    close_stream(s);
    dt_channel_send(s->owner->channel, DT_MSG_OUTPUT_EOF, &m);
}

static void note_quiet(struct stream *s, enum dt_quiet_state state)
{
    struct dt_msg_output_quiet m = { s->rank, s->number };

    if (state == DT_QUIET_BEGINS)
        dt_channel_send(s->owner->channel, DT_MSG_OUTPUT_QUIET, &m);
}

/* Runs in a child. */
static size_t look_for_writer(const void *pipe, pid_t agent, void *answer)
{
    bool awake = dt_pipewriter_is_awake(pipe, agent);

    memcpy(answer, &awake, sizeof awake);
    return sizeof awake;
}

/* If the child has died without an answer, the next look decides. */
static void on_looked(void *arg, const void *answer, size_t n)
{
    struct dt_relay *r = arg;
    struct stream *s = r->looked_at;
    bool awake = true;

    r->look = NULL;
    if (n == sizeof awake)
        memcpy(&awake, answer, sizeof awake);
    if (s->fd >= 0 && s->quiet.undecided && s->quiet.due_ns == r->looked_due_ns)
        note_quiet(s, dt_quiet_looked(&s->quiet, s->fd, awake));
}

/* Looks for the writers of one stream at a time. */
static void begin_look(struct stream *s)
{
    struct dt_relay *r = s->owner;
    char pipe[DT_PIPE_NAME];

    if (r->look)
        return;
    dt_pipewriter_name(pipe, s->fd);
    r->looked_at = s;
    r->looked_due_ns = s->quiet.due_ns;
    r->look = dt_look_begin(r->loop, &(struct dt_look_at){ look_for_writer, pipe, on_looked, r });
}

static void on_quiet_due(uv_timer_t *timer)
{
    struct dt_relay *r = timer->data;
    bool undecided = false;

    for (uint32_t i = 0; i < r->n; i++) {
        struct stream *s = &r->streams[i];
        enum dt_quiet_state state;

        if (s->fd < 0)
            continue;
        state = dt_quiet_ask(&s->quiet, s->fd);
        note_quiet(s, state);
        if (state == DT_QUIET_NEEDS_LOOK)
            begin_look(s);
        undecided |= s->quiet.undecided;
    }
    if (!undecided)
        uv_timer_stop(timer);
}

static void note_read(struct stream *s, const uint8_t *data, size_t n, bool emptied)
{
    struct dt_relay *r = s->owner;

    dt_quiet_read(&s->quiet, data, n, emptied);
    if (s->quiet.undecided && !uv_is_active((uv_handle_t *)&r->timer))
        uv_timer_start(&r->timer, on_quiet_due, DT_QUIET_MS, LOOK_MS);
}

/* Whether reading n of want bytes has left nothing. What is read of a terminal may be a part of
 * what it holds. */
static bool has_emptied(const struct stream *s, size_t n, size_t want)
{
    return n < want && (!s->is_terminal || dt_quiet_is_empty(s->fd));
}

/* Sends one frame of the stream. Returns false if nothing is there, or nothing more will come. */
static bool forward(struct stream *s)
{
    static uint8_t buffer[CHUNK];
    struct dt_msg_output m = { .rank = s->rank, .fd = s->number };
    size_t want = s->credit < CHUNK ? s->credit : CHUNK;
    ssize_t n;

    if (s->left >= 0 && (size_t)s->left < want)
        want = (size_t)s->left;
    n = want ? read(s->fd, buffer, want) : 0;
    if (n < 0 && (errno == EINTR || (errno == EAGAIN && s->left < 0)))
        return errno == EINTR;
    if (n <= 0) {
        end_stream(s);
        return false;
    }
    s->credit -= (uint32_t)n;
    if (s->left >= 0)
        s->left -= (int)n;
    m.data = (struct dt_msg_blob){ buffer, (size_t)n };
    dt_channel_send(s->owner->channel, DT_MSG_OUTPUT, &m);
    note_read(s, buffer, (size_t)n, has_emptied(s, (size_t)n, want));
    if (s->left == 0)
        end_stream(s);
    return s->fd >= 0;
}

static void on_output_readable(uv_poll_t *poll, int status, int events);

static void set_reading(struct stream *s, bool on)
{
    if (s->reading == on)
        return;
    s->reading = on;
    if (on)
        uv_poll_start(&s->poll, UV_READABLE, on_output_readable);
    else
        uv_poll_stop(&s->poll);
}

/* Reads from a stream exactly while its output can be sent. */
static void update(struct stream *s)
{
    if (s->fd >= 0)
        set_reading(s, s->credit > 0 && dt_channel_has_room(s->owner->channel));
}

static void on_output_readable(uv_poll_t *poll, int status, int events)
{
    struct stream *s = poll->data;

    (void)status; /* read reports the error */
    (void)events;
    update(s);
    if (s->reading)
        forward(s);
    update(s);
    maybe_ended(s->owner);
}

/* A stream whose end is known needs no poll: the rest is in the pipe. */
static void drain(struct stream *s)
{
    while (s->fd >= 0 && (s->credit > 0 || s->left == 0) &&
           dt_channel_has_room(s->owner->channel) && forward(s))
        continue;
}

struct dt_relay *dt_relay_create(uv_loop_t *loop, struct dt_channel *channel,
                                 const struct dt_u32s *numbers, void (*ended)(void *arg), void *arg)
{
    uint32_t n = STREAMS * numbers->n;
    struct dt_relay *r = dt_xcalloc(1, sizeof *r + n * sizeof r->streams[0]);

    r->loop = loop;
    uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    r->handles = 1;
    r->channel = channel;
    r->numbers = numbers;
    r->n = n;
    r->ended = ended;
    r->arg = arg;
    for (uint32_t i = 0; i < n; i++)
        r->streams[i].fd = -1;
    return r;
}

void dt_relay_add(struct dt_relay *r, uint32_t index, int stream, int fd)
{
    struct stream *s = &r->streams[STREAMS * index + (uint32_t)stream - 1];

    *s = (struct stream){
        .owner = r,
        .rank = r->numbers->v[index],
        .number = (uint8_t)stream,
        .fd = fd,
        .is_terminal = isatty(fd),
        .credit = DT_STREAM_CREDIT,
        .left = -1,
    };
    uv_poll_init(r->loop, &s->poll, fd);
    s->poll.data = s;
    r->handles++;
    r->open++;
    update(s);
}

/* Returns NULL if there is no such stream. */
static struct stream *find_stream(struct dt_relay *r, uint32_t rank, uint8_t stream)
{
    int64_t index = dt_u32s_find(r->numbers, rank);

    return index < 0 || stream < 1 || stream > STREAMS ? NULL
                                                       : &r->streams[STREAMS * index + stream - 1];
}

/* Opens the end that the rank writes to: what the agent adds follows what the rank has written. */
static int open_writer(const struct stream *s)
{
    const int flags = O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
    char path[32];

    if (s->is_terminal)
        return ioctl(s->fd, TIOCGPTPEER, flags);
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
    return open(path, flags);
}

bool dt_relay_print(struct dt_relay *r, uint32_t rank, uint8_t stream, const void *data, size_t n)
{
    struct stream *s = find_stream(r, rank, stream);
    bool written;
    int fd;

    if (!s || s->fd < 0)
        return false;
    fd = open_writer(s);
    written = fd >= 0 && write(fd, data, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return written;
}

void dt_relay_credit(struct dt_relay *r, uint32_t rank, uint8_t stream, uint32_t bytes)
{
    struct stream *s = find_stream(r, rank, stream);

    if (!s)
        return;
    /* Credit for output of the previous generation may still arrive. */
    s->credit = bytes < DT_STREAM_CREDIT - s->credit ? s->credit + bytes : DT_STREAM_CREDIT;
    if (r->finishing)
        drain(s);
    else
        update(s);
    maybe_ended(r);
}

void dt_relay_room(struct dt_relay *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->finishing)
            drain(&r->streams[i]);
        else
            update(&r->streams[i]);
    }
    maybe_ended(r);
}

/* Of a terminal, FIONREAD counts only a part. */
static int holds_at_most(const struct stream *s)
{
    int n;

    if (s->is_terminal)
        return TERMINAL_MAX;
    return ioctl(s->fd, FIONREAD, &n) < 0 ? 0 : n;
}

void dt_relay_finish(struct dt_relay *r)
{
    r->finishing = true;
    for (uint32_t i = 0; i < r->n; i++) {
        struct stream *s = &r->streams[i];

        if (s->fd < 0)
            continue;
        set_reading(s, false);
        s->left = holds_at_most(s);
        drain(s);
    }
    maybe_ended(r);
}

void dt_relay_destroy(struct dt_relay *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->streams[i].fd >= 0)
            close_stream(&r->streams[i]);
    }
    dt_look_end(r->look);
    uv_close((uv_handle_t *)&r->timer, on_relay_timer_closed);
}
