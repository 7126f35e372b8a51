#include "runtime/wire/handshake.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* The messages in their order, after the connection has been made. */
enum { CONNECT = -1, HELLO, ANSWER, PROOF, SEATED };

/* Ranks may compute for hours between two calls. The firewalls of some clouds forget a connection
 * that is idle for 4 to 10 minutes, and then drop its packets. */
static void keep_alive(int fd)
{
    int on = 1, idle_s = DT_HANDSHAKE_IDLE_S;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
}

static void begin_handshake(struct dt_handshake *s, int fd, int stage)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    keep_alive(fd);
    s->fd = fd;
    s->stage = stage;
    s->sending = stage == CONNECT;
    s->at = 0;
}

void dt_handshake_call(struct dt_handshake *s, int fd, const struct dt_auth *a)
{
    begin_handshake(s, fd, CONNECT);
    dt_auth_hello(a, s->hello);
}

void dt_handshake_host(struct dt_handshake *s, int fd)
{
    begin_handshake(s, fd, HELLO);
}

bool dt_handshake_is_connected(const struct dt_handshake *s)
{
    return s->stage != CONNECT;
}

bool dt_handshake_awaits_hello(const struct dt_handshake *s)
{
    return s->stage == HELLO;
}

/* Transfers one message of the handshake. THROUGH: it is complete, and the next one follows. */
static enum dt_verdict move_message(struct dt_handshake *s, bool sending, uint8_t *msg, size_t len)
{
    ssize_t n;

    s->sending = sending;
    n = sending ? send(s->fd, msg + s->at, len - s->at, MSG_NOSIGNAL)
                : recv(s->fd, msg + s->at, len - s->at, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? DT_SHAKE_PENDING : DT_SHAKE_FAILED;
    if (n == 0) {
        errno = ECONNRESET;
        return DT_SHAKE_FAILED;
    }
    s->at += (size_t)n;
    if (s->at < len)
        return DT_SHAKE_PENDING;
    s->at = 0;
    s->stage++;
    return DT_SHAKE_THROUGH;
}

static enum dt_verdict fail_proof(void)
{
    errno = EACCES;
    return DT_SHAKE_FAILED;
}

/* A caller that waits for several descriptors comes here before this one can be written to. Then
 * there is no error, and no peer either. */
static enum dt_verdict finish_connect(struct dt_handshake *s)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(int), peer_len = sizeof peer;
    int error = 0;

    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return DT_SHAKE_FAILED;
    if (error) {
        errno = error;
        return DT_SHAKE_FAILED;
    }
    if (getpeername(s->fd, (struct sockaddr *)&peer, &peer_len) < 0)
        return errno == ENOTCONN ? DT_SHAKE_PENDING : DT_SHAKE_FAILED;
    s->stage = HELLO;
    return DT_SHAKE_THROUGH;
}

enum dt_verdict dt_handshake_calling(struct dt_handshake *s, const struct dt_auth *a)
{
    enum dt_verdict v = DT_SHAKE_THROUGH;

    while (v == DT_SHAKE_THROUGH) {
        switch (s->stage) {
        case CONNECT:
            v = finish_connect(s);
            break;
        case HELLO:
            v = move_message(s, true, s->hello, sizeof s->hello);
            break;
        case ANSWER:
            v = move_message(s, false, s->answer, sizeof s->answer);
            break;
        case PROOF:
            if (s->at == 0 && !dt_auth_prove(a, s->hello, s->answer, s->proof))
                return fail_proof();
            v = move_message(s, true, s->proof, sizeof s->proof);
            break;
        case SEATED:
            v = move_message(s, false, &s->seated, sizeof s->seated);
            break;
        default:
            return DT_SHAKE_THROUGH;
        }
    }
    return v;
}

enum dt_verdict dt_handshake_hosting(struct dt_handshake *s, const struct dt_auth *a)
{
    enum dt_verdict v = DT_SHAKE_THROUGH;

    while (v == DT_SHAKE_THROUGH) {
        switch (s->stage) {
        case HELLO:
            v = move_message(s, false, s->hello, sizeof s->hello);
            break;
        case ANSWER:
            if (s->at == 0 && !dt_auth_answer(a, s->hello, s->answer))
                return DT_SHAKE_UNKNOWN;
            v = move_message(s, true, s->answer, sizeof s->answer);
            break;
        case PROOF:
            v = move_message(s, false, s->proof, sizeof s->proof);
            break;
        case SEATED:
            if (s->at == 0 && !dt_auth_check(a, s->hello, s->answer, s->proof))
                return fail_proof();
            v = move_message(s, true, &s->seated, sizeof s->seated);
            break;
        default:
            return DT_SHAKE_THROUGH;
        }
    }
    return v;
}
