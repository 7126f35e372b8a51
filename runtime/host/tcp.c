#include "runtime/host/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    GUESTS = 8,      /* callers that are heard at a time */
    GUEST_MS = 5000, /* how long each may take to prove itself */
    RETRY_MS = 100,  /* after a refused connection */
    BACKLOG = 128,
};

/* One end of a handshake: bytes to be sent, bytes to come. */
struct end {
    int fd; /* -1: none */
    enum { CONNECTING, SENDING, RECEIVING } doing;
    int stage;
    size_t at; /* in the message of this stage */
    int64_t deadline;
    uint8_t hello[DT_AUTH_HELLO];
    uint8_t answer[DT_AUTH_ANSWER];
    uint8_t proof[DT_AUTH_PROOF];
    uint8_t seated; /* the listener's last word: this connection is the one */
};

enum verdict { PENDING, PROVED, FAILED };

struct meeting {
    const struct dt_tcp_plan *plan;
    struct end out;
    struct end guests[GUESTS];
    int64_t retry_at;
    int error; /* why the last attempt to connect failed */
    int out_fd;
    int in_fd;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int listen_on(int family, uint16_t *port)
{
    int off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = { 0 };
    socklen_t len = family == AF_INET6 ? sizeof a.v6 : sizeof a.v4;

    a.any.sa_family = (sa_family_t)family;
    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, &a.any, len) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, &a.any, &len) < 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
    return fd;
}

int dt_tcp_listen(uint16_t *port)
{
    int fd = listen_on(AF_INET6, port);

    return fd < 0 ? listen_on(AF_INET, port) : fd;
}

static void end_close(struct end *e)
{
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
}

static void end_begin(struct end *e, int fd, int doing)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    e->fd = fd;
    e->doing = doing;
    e->stage = 0;
    e->at = 0;
}

/* Moves one message of the handshake. PROVED: it is through. */
static enum verdict move(struct end *e, uint8_t *msg, size_t len)
{
    ssize_t n = e->doing == SENDING ? send(e->fd, msg + e->at, len - e->at, MSG_NOSIGNAL)
                                    : recv(e->fd, msg + e->at, len - e->at, 0);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? PENDING : FAILED;
    if (n == 0) {
        errno = ECONNRESET;
        return FAILED;
    }
    e->at += (size_t)n;
    if (e->at < len)
        return PENDING;
    e->at = 0;
    e->stage++;
    return PROVED;
}

/* Connecting side: hello out, answer in, proof out, last word in. */
static enum verdict call(struct end *e, const struct dt_auth *a)
{
    enum verdict v = PROVED;

    while (v == PROVED) {
        switch (e->stage) {
        case 0:
            v = move(e, e->hello, sizeof e->hello);
            break;
        case 1:
            e->doing = RECEIVING;
            v = move(e, e->answer, sizeof e->answer);
            break;
        case 2:
            if (e->at == 0 && !dt_auth_prove(a, e->hello, e->answer, e->proof)) {
                errno = EACCES;
                return FAILED;
            }
            e->doing = SENDING;
            v = move(e, e->proof, sizeof e->proof);
            break;
        case 3:
            e->doing = RECEIVING;
            v = move(e, &e->seated, sizeof e->seated);
            break;
        default:
            return PROVED;
        }
    }
    return v;
}

/* Listening side: hello in, answer out, proof in, last word out. */
static enum verdict host(struct end *e, const struct dt_auth *a)
{
    enum verdict v = PROVED;

    while (v == PROVED) {
        switch (e->stage) {
        case 0:
            v = move(e, e->hello, sizeof e->hello);
            break;
        case 1:
            if (e->at == 0 && !dt_auth_answer(a, e->hello, e->answer))
                return FAILED;
            e->doing = SENDING;
            v = move(e, e->answer, sizeof e->answer);
            break;
        case 2:
            e->doing = RECEIVING;
            v = move(e, e->proof, sizeof e->proof);
            break;
        case 3:
            if (e->at == 0 && !dt_auth_check(a, e->hello, e->answer, e->proof))
                return FAILED;
            e->doing = SENDING;
            v = move(e, &e->seated, sizeof e->seated);
            break;
        default:
            return PROVED;
        }
    }
    return v;
}

static void out_failed(struct meeting *m)
{
    m->error = errno;
    end_close(&m->out);
    m->retry_at = now_ms() + RETRY_MS;
}

static void out_start(struct meeting *m)
{
    const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                    .ai_socktype = SOCK_STREAM };
    struct addrinfo *ai;
    char port[8];

    snprintf(port, sizeof port, "%u", m->plan->port);
    errno = EINVAL;
    if (getaddrinfo(m->plan->host, port, &hints, &ai) != 0) {
        out_failed(m);
        return;
    }
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        end_begin(&m->out, fd, CONNECTING);
        dt_auth_hello(&m->plan->out, m->out.hello);
    }
    if (fd < 0 || (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS))
        out_failed(m);
    freeaddrinfo(ai);
}

static void out_ready(struct meeting *m)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (m->out.doing == CONNECTING) {
        if (getsockopt(m->out.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error) {
            errno = error;
            out_failed(m);
            return;
        }
        m->out.doing = SENDING;
    }
    switch (call(&m->out, &m->plan->out)) {
    case PENDING:
        break;
    case PROVED:
        m->out_fd = m->out.fd;
        m->out.fd = -1;
        break;
    case FAILED:
        out_failed(m);
        break;
    }
}

/* A free seat, or that of the guest who has been talking longest: callers that prove themselves do
 * so at once, so who lingers is a stranger. */
static struct end *seat(struct meeting *m)
{
    struct end *oldest = &m->guests[0];

    for (int i = 0; i < GUESTS; i++) {
        if (m->guests[i].fd < 0)
            return &m->guests[i];
        if (m->guests[i].deadline < oldest->deadline)
            oldest = &m->guests[i];
    }
    end_close(oldest);
    return oldest;
}

static void guest_arrived(struct meeting *m)
{
    int fd = accept4(m->plan->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct end *e;

    if (fd < 0)
        return;
    e = seat(m);
    end_begin(e, fd, RECEIVING);
    e->deadline = now_ms() + GUEST_MS;
}

static void guest_ready(struct meeting *m, struct end *e)
{
    switch (host(e, &m->plan->in)) {
    case PENDING:
        break;
    case PROVED:
        if (m->in_fd < 0) {
            m->in_fd = e->fd;
            e->fd = -1;
            break;
        }
        end_close(e);
        break;
    case FAILED:
        end_close(e);
        break;
    }
}

static short events_of(const struct end *e)
{
    return e->doing == RECEIVING ? POLLIN : POLLOUT;
}

/* Waits for anything to happen, and handles it. Slots: agent, listener, out, guests. */
static void turn(struct meeting *m, int timeout)
{
    struct pollfd p[3 + GUESTS];

    p[0] = (struct pollfd){ .fd = m->plan->agent->fd, .events = POLLIN };
    p[1] = (struct pollfd){ .fd = m->in_fd < 0 ? m->plan->listener : -1, .events = POLLIN };
    p[2] = (struct pollfd){ .fd = m->out.fd, .events = events_of(&m->out) };
    for (int i = 0; i < GUESTS; i++)
        p[3 + i] = (struct pollfd){ m->guests[i].fd, events_of(&m->guests[i]), 0 };
    if (poll(p, 3 + GUESTS, timeout) <= 0)
        return;
    if (p[0].revents)
        dt_agentlink_heed(m->plan->agent, m->plan->shm);
    if (p[2].revents)
        out_ready(m);
    for (int i = 0; i < GUESTS; i++) {
        if (p[3 + i].revents)
            guest_ready(m, &m->guests[i]);
    }
    if (p[1].revents)
        guest_arrived(m);
}

/* What has run out of time; returns when the next one will. */
static int64_t expire(struct meeting *m, int64_t now, int64_t next)
{
    if (m->out_fd < 0 && m->out.fd < 0 && m->retry_at <= now)
        out_start(m);
    if (m->out_fd < 0 && m->out.fd < 0 && m->retry_at < next)
        next = m->retry_at;
    for (int i = 0; i < GUESTS; i++) {
        struct end *e = &m->guests[i];

        if (e->fd >= 0 && e->deadline <= now)
            end_close(e);
        if (e->fd >= 0 && e->deadline < next)
            next = e->deadline;
    }
    return next;
}

static dt_result_t meet(struct meeting *m, struct dt_trouble *trouble)
{
    int64_t deadline = now_ms() + m->plan->timeout_ms;

    while (m->out_fd < 0 || m->in_fd < 0) {
        uint32_t culprit;
        int stopped = dt_hostshm_stopped(m->plan->shm, &culprit);
        int64_t now = now_ms();
        int64_t next = expire(m, now, deadline);

        if (stopped)
            return dt_trouble(trouble, (dt_result_t)stopped, culprit);
        if (now >= deadline) {
            dt_trouble(trouble, DT_ERR_TIMEOUT,
                       m->out_fd < 0 ? m->plan->out.peer : m->plan->in.peer);
            trouble->error = m->out_fd < 0 ? m->error : 0;
            return DT_ERR_TIMEOUT;
        }
        turn(m, next <= now ? 0 : (int)(next - now));
    }
    return DT_OK;
}

dt_result_t dt_tcp_connect(const struct dt_tcp_plan *plan, int *out_fd, int *in_fd,
                           struct dt_trouble *trouble)
{
    struct meeting m = { .plan = plan, .out = { .fd = -1 }, .out_fd = -1, .in_fd = -1 };
    dt_result_t r;

    for (int i = 0; i < GUESTS; i++)
        m.guests[i].fd = -1;
    r = meet(&m, trouble);
    end_close(&m.out);
    for (int i = 0; i < GUESTS; i++)
        end_close(&m.guests[i]);
    if (r != DT_OK && m.out_fd >= 0)
        close(m.out_fd);
    if (r != DT_OK && m.in_fd >= 0)
        close(m.in_fd);
    *out_fd = r == DT_OK ? m.out_fd : -1;
    *in_fd = r == DT_OK ? m.in_fd : -1;
    return r;
}
