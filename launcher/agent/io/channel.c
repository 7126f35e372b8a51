#include "launcher/agent/io/channel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/mem.h"
#include "runtime/wire/frame.h"

enum {
    READ_SIZE = 64 * 1024,
    /* Ranks are not read while DATA_MAX bytes of their output wait, or NEWS_MAX bytes of control
     * messages, some of which ranks cause. */
    DATA_MAX = 256 * 1024,
    NEWS_MAX = 1024 * 1024,
    /* A launcher that leaves this many bytes of control messages unread counts as gone. */
    CONTROL_MAX = 64 * 1024 * 1024,
};

static const char marker[] = "DTRUN-AGENT 1\n";

struct dt_channel {
    uv_poll_t in;
    uv_poll_t out;
    int in_fd;
    int out_fd;
    struct dt_channel_events events;
    void *arg;
    struct dt_unframe unframe;
    struct dt_bytequeue control;
    struct dt_bytequeue data;
    struct dt_bytequeue *current; /* the queue whose frames are being written, or NULL */
    size_t left;                  /* bytes of it left to write; they end with a complete frame */
    struct dt_put frame;          /* space for the next frame */
    bool polling;                 /* waiting until out is writable */
    bool refused;                 /* dt_channel_has_room has returned false */
};

static void gone(struct dt_channel *c, const char *why)
{
    c->events.gone(c->arg, why);
}

/* Chooses what to write next, always complete frames: all control frames, or else data frames that
 * together are no longer than the longest frame. */
static void choose(struct dt_channel *c)
{
    size_t end = 0;

    c->current = NULL;
    if (c->control.len) {
        c->current = &c->control;
        c->left = c->control.len;
        return;
    }
    while (end < c->data.len) {
        struct dt_get g = dt_get_init(dt_bytequeue_head(&c->data) + end, 4);
        size_t frame = DT_FRAME_HEADER + dt_get_u32(&g);

        if (end > 0 && end + frame > DT_FRAME_HEADER + DT_FRAME_PAYLOAD_MAX)
            break;
        end += frame;
    }
    if (end > 0) {
        c->current = &c->data;
        c->left = end;
    }
}

static void on_writable(uv_poll_t *poll, int status, int events);

static void want_writable(struct dt_channel *c, bool on)
{
    if (c->polling == on)
        return;
    c->polling = on;
    if (on)
        uv_poll_start(&c->out, UV_WRITABLE, on_writable);
    else
        uv_poll_stop(&c->out);
}

static void flush(struct dt_channel *c)
{
    for (;;) {
        ssize_t n;

        if (!c->current)
            choose(c);
        if (!c->current)
            break;
        n = write(c->out_fd, dt_bytequeue_head(c->current), c->left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            gone(c, strerror(errno));
        if (n < 0)
            break;
        dt_bytequeue_consume(c->current, (size_t)n);
        c->left -= (size_t)n;
        if (c->left == 0)
            c->current = NULL;
    }
    want_writable(c, c->current != NULL);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct dt_channel *c = poll->data;

    (void)events;
    if (status < 0)
        gone(c, uv_strerror(status));
    flush(c);
    if (c->refused && dt_channel_has_room(c)) {
        c->refused = false;
        c->events.room(c->arg);
    }
}

bool dt_channel_has_room(struct dt_channel *c)
{
    bool room = c->data.len < DATA_MAX && c->control.len < NEWS_MAX;

    c->refused |= !room;
    return room;
}

void dt_channel_send(struct dt_channel *c, uint8_t type, const void *msg)
{
    c->frame.len = 0;
    dt_msg_frame(&c->frame, type, msg);
    if (c->frame.failed)
        gone(c, "a message is too long, or memory ran out");
    dt_bytequeue_add(dt_frame_is_data(type) ? &c->data : &c->control, c->frame.data, c->frame.len);
    if (c->control.len > CONTROL_MAX)
        gone(c, "the launcher does not read");
    if (!c->polling)
        flush(c);
}

static int on_frame(void *arg, uint8_t type, const uint8_t *payload, size_t len)
{
    struct dt_channel *c = arg;
    union dt_msg msg;

    if (dt_msg_decode(type, payload, len, &msg) < 0)
        return -1;
    c->events.message(c->arg, type, &msg);
    dt_msg_free(type, &msg);
    return 0;
}

static void on_channel_readable(uv_poll_t *poll, int status, int events)
{
    struct dt_channel *c = poll->data;
    static uint8_t buffer[READ_SIZE];
    const char *why = NULL;
    ssize_t n;

    (void)events;
    if (status < 0)
        gone(c, uv_strerror(status));
    n = read(c->in_fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        gone(c, n < 0 ? strerror(errno) : NULL);
    c->events.heard(c->arg);
    if (dt_unframe_feed(&c->unframe, buffer, (size_t)n, on_frame, c, &why) != 0)
        gone(c, why ? why : "a message is malformed");
}

struct dt_channel *dt_channel_open(uv_loop_t *loop, int in, int out,
                                   const struct dt_channel_events *events, void *arg,
                                   struct dt_error *err)
{
    struct dt_channel *c = dt_xcalloc(1, sizeof *c);
    int rc;

    c->in_fd = in;
    c->out_fd = out;
    c->events = *events;
    c->arg = arg;
    c->in.data = c->out.data = c;
    rc = uv_poll_init(loop, &c->in, in);
    if (rc == 0)
        rc = uv_poll_init(loop, &c->out, out);
    if (rc < 0) {
        dt_error_set(err, "standard input and output must be pipes or sockets: %s",
                     uv_strerror(rc));
        return NULL;
    }
    uv_poll_start(&c->in, UV_READABLE, on_channel_readable);
    dt_bytequeue_add(&c->control, marker, sizeof marker - 1);
    flush(c);
    return c;
}
