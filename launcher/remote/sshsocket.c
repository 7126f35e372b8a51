#include "launcher/remote/sshsocket.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/uvloop.h"

void dt_sshsocket_take(struct dt_sshsocket *s, uv_tcp_t *tcp, void (*moved)(void *arg),
                       void (*closed)(void *arg), void *arg)
{
    s->tcp = tcp;
    s->moved = moved;
    s->closed = closed;
    s->arg = arg;
    tcp->data = s->write.data = s;
    uv_tcp_nodelay(tcp, 1);
}

/* sshd leaves Nagle's algorithm on, so a short packet waits until the previous one is acknowledged.
 * The kernel here would delay that acknowledgement by 40 ms. */
static void acknowledge(struct dt_sshsocket *s)
{
    static const int yes = 1;

    if (!s->closing)
        setsockopt(dt_sshsocket_fd(s), IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof yes);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dt_sshsocket *s = stream->data;

    if (n < 0) {
        uv_read_stop(stream);
        s->hung_up = true;
        s->error = n == UV_EOF ? 0 : (int)n;
    } else {
        if (!s->greeting[0])
            snprintf(s->greeting, sizeof s->greeting, "%.*s", (int)n, buf->base);
        dt_bytequeue_add(&s->in, buf->base, (size_t)n);
    }
    s->moved(s->arg);
    acknowledge(s);
}

void dt_sshsocket_read(struct dt_sshsocket *s)
{
    uv_read_start((uv_stream_t *)s->tcp, dt_uvloop_give_buffer, on_read);
}

void dt_sshsocket_end_when_silent(struct dt_sshsocket *s, int seconds)
{
    int probe = seconds > 1 ? seconds / 2 : 1, again = 1, on = seconds > 0;
    int ms = seconds < INT_MAX / 1000 ? seconds * 1000 : INT_MAX;
    int fd = dt_sshsocket_fd(s);

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe, sizeof probe);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof again);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static LIBSSH2_SEND_FUNC(take_packet)
{
    struct dt_sshsocket *s = *abstract;

    (void)socket;
    (void)flags;
    dt_bytequeue_add(&s->wire, buffer, length);
    return (ssize_t)length;
}

static LIBSSH2_RECV_FUNC(give_bytes)
{
    struct dt_sshsocket *s = *abstract;
    size_t n = s->in.len < length ? s->in.len : length;

    (void)socket;
    (void)flags;
    if (n == 0)
        return s->hung_up ? 0 : -EAGAIN;
    memcpy(buffer, dt_bytequeue_head(&s->in), n);
    dt_bytequeue_consume(&s->in, n);
    return (ssize_t)n;
}

/* The host announces that it will close the connection. */
static LIBSSH2_DISCONNECT_FUNC(note_goodbye)
{
    struct dt_sshsocket *s = *abstract;

    (void)session;
    (void)reason;
    (void)message;
    (void)message_len;
    (void)language;
    (void)language_len;
    s->hung_up = true;
}

static void set_callback(LIBSSH2_SESSION *session, int event, void (*callback)(void))
{
#if LIBSSH2_VERSION_NUM >= 0x010b01 /* 1.11.1, which deprecates the other function */
    libssh2_session_callback_set2(session, event, callback);
#else
    libssh2_session_callback_set(session, event, (void *)callback);
#endif
}

LIBSSH2_SESSION *dt_sshsocket_session(struct dt_sshsocket *s)
{
    LIBSSH2_SESSION *session = libssh2_session_init_ex(NULL, NULL, NULL, s);

    if (!session)
        return NULL;
    libssh2_session_set_blocking(session, 0);
    set_callback(session, LIBSSH2_CALLBACK_SEND, (void (*)(void))take_packet);
    set_callback(session, LIBSSH2_CALLBACK_RECV, (void (*)(void))give_bytes);
    set_callback(session, LIBSSH2_CALLBACK_DISCONNECT, (void (*)(void))note_goodbye);
    return session;
}

int dt_sshsocket_fd(const struct dt_sshsocket *s)
{
    uv_os_fd_t fd = -1;

    uv_fileno((uv_handle_t *)s->tcp, &fd);
    return fd;
}

static void on_written(uv_write_t *req, int status)
{
    struct dt_sshsocket *s = req->data;

    dt_bytequeue_free(&s->in_flight);
    if (s->closing)
        return;
    if (status < 0 && !s->hung_up) {
        s->hung_up = true;
        s->error = status;
    }
    s->moved(s->arg);
}

void dt_sshsocket_flush(struct dt_sshsocket *s)
{
    uv_buf_t buf;
    int rc;

    if (s->closing || !s->tcp || s->in_flight.len || s->wire.len == 0)
        return;
    s->in_flight = s->wire;
    s->wire = (struct dt_bytequeue){ 0 };
    buf = uv_buf_init((char *)(uintptr_t)dt_bytequeue_head(&s->in_flight),
                      (unsigned)s->in_flight.len);
    rc = uv_write(&s->write, (uv_stream_t *)s->tcp, &buf, 1, on_written);
    if (rc < 0)
        on_written(&s->write, rc);
}

size_t dt_sshsocket_pending(const struct dt_sshsocket *s)
{
    return s->wire.len + s->in_flight.len;
}

void dt_sshsocket_hang_up(struct dt_sshsocket *s)
{
    s->hung_up = true;
    dt_bytequeue_consume(&s->in, s->in.len);
}

static void on_socket_closed(uv_handle_t *handle)
{
    struct dt_sshsocket *s = handle->data;

    free(handle);
    s->closed(s->arg);
}

void dt_sshsocket_close(struct dt_sshsocket *s)
{
    uv_buf_t buf =
        uv_buf_init((char *)(uintptr_t)dt_bytequeue_head(&s->wire), (unsigned)s->wire.len);

    s->closing = true;
    if (s->in_flight.len == 0 && s->wire.len)
        uv_try_write((uv_stream_t *)s->tcp, &buf, 1);
    uv_close((uv_handle_t *)s->tcp, on_socket_closed);
}

void dt_sshsocket_free(struct dt_sshsocket *s)
{
    dt_bytequeue_free(&s->in);
    dt_bytequeue_free(&s->wire);
    dt_bytequeue_free(&s->in_flight);
}
