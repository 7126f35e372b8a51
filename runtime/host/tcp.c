#include "runtime/host/tcp.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/wire/handshake.h"
#include "runtime/wire/inet.h"

enum {
    GUESTS = 8,      /* callers that are heard at a time */
    GUEST_MS = 5000, /* how long each may take to prove itself */
    RETRY_MS = 100,  /* after a refused connection */
};

struct end { /* one end of a handshake */
    struct dt_handshake shake;
    int64_t deadline;
};

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

static void end_close(struct end *e)
{
    if (e->shake.fd >= 0)
        close(e->shake.fd);
    e->shake.fd = -1;
}

static int end_keep(struct end *e)
{
    int fd = e->shake.fd;

    e->shake.fd = -1;
    return fd;
}

static void out_failed(struct meeting *m)
{
    m->error = errno;
    end_close(&m->out);
    m->retry_at = now_ms() + RETRY_MS;
}

static void out_start(struct meeting *m)
{
    int fd = dt_inet_connect(m->plan->host, m->plan->port);

    if (fd < 0)
        out_failed(m);
    else
        dt_handshake_call(&m->out.shake, fd, &m->plan->out);
}

static void out_ready(struct meeting *m)
{
    enum dt_verdict verdict = dt_handshake_calling(&m->out.shake, &m->plan->out);

    if (verdict == DT_SHAKE_THROUGH)
        m->out_fd = end_keep(&m->out);
    else if (verdict == DT_SHAKE_FAILED)
        out_failed(m);
}

/* A free seat, or that of the guest who has been talking longest: callers that prove themselves do
 * so at once, so who lingers is a stranger. */
static struct end *seat(struct meeting *m)
{
    struct end *oldest = &m->guests[0];

    for (int i = 0; i < GUESTS; i++) {
        if (m->guests[i].shake.fd < 0)
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
    dt_handshake_host(&e->shake, fd);
    e->deadline = now_ms() + GUEST_MS;
}

static void guest_ready(struct meeting *m, struct end *e)
{
    enum dt_verdict verdict = dt_handshake_hosting(&e->shake, &m->plan->in);

    if (verdict == DT_SHAKE_PENDING)
        return;
    if (verdict == DT_SHAKE_THROUGH && m->in_fd < 0)
        m->in_fd = end_keep(e);
    end_close(e);
}

static short events_of(const struct end *e)
{
    return e->shake.sending ? POLLOUT : POLLIN;
}

/* Waits for anything to happen, and handles it. */
static dt_result_t turn(struct meeting *m, int timeout)
{
    enum { LISTENER = DT_ALARM_FDS, OUT, GUEST, SLOTS = GUEST + GUESTS };
    struct pollfd p[SLOTS];
    dt_result_t r;

    p[LISTENER] = (struct pollfd){ .fd = m->in_fd < 0 ? m->plan->listener : -1, .events = POLLIN };
    p[OUT] = (struct pollfd){ .fd = m->out.shake.fd, .events = events_of(&m->out) };
    for (int i = 0; i < GUESTS; i++)
        p[GUEST + i] = (struct pollfd){ m->guests[i].shake.fd, events_of(&m->guests[i]), 0 };
    r = dt_alarm_poll(&m->plan->alarm, p, SLOTS, timeout);
    if (p[OUT].revents)
        out_ready(m);
    for (int i = 0; i < GUESTS; i++) {
        if (p[GUEST + i].revents)
            guest_ready(m, &m->guests[i]);
    }
    if (p[LISTENER].revents)
        guest_arrived(m);
    return r;
}

/* What has run out of time; returns when the next one will. */
static int64_t expire(struct meeting *m, int64_t now, int64_t next)
{
    if (m->out_fd < 0 && m->out.shake.fd < 0 && m->retry_at <= now)
        out_start(m);
    if (m->out_fd < 0 && m->out.shake.fd < 0 && m->retry_at < next)
        next = m->retry_at;
    for (int i = 0; i < GUESTS; i++) {
        struct end *e = &m->guests[i];

        if (e->shake.fd >= 0 && e->deadline <= now)
            end_close(e);
        if (e->shake.fd >= 0 && e->deadline < next)
            next = e->deadline;
    }
    return next;
}

static dt_result_t meet(struct meeting *m)
{
    struct dt_trouble *trouble = m->plan->alarm.trouble;
    int64_t deadline = now_ms() + m->plan->timeout_ms;
    dt_result_t r = dt_alarm_check(&m->plan->alarm);

    while (r == DT_OK && (m->out_fd < 0 || m->in_fd < 0)) {
        int64_t now = now_ms();
        int64_t next = expire(m, now, deadline);

        if (now >= deadline) {
            dt_trouble(trouble, DT_ERR_TIMEOUT,
                       m->out_fd < 0 ? m->plan->out.peer : m->plan->in.peer);
            trouble->error = m->out_fd < 0 ? m->error : 0;
            return DT_ERR_TIMEOUT;
        }
        r = turn(m, next <= now ? 0 : (int)(next - now));
    }
    return r;
}

dt_result_t dt_tcp_connect(const struct dt_tcp_plan *plan, int *out_fd, int *in_fd)
{
    struct meeting m = {
        .plan = plan, .out = { .shake = { .fd = -1 } }, .out_fd = -1, .in_fd = -1
    };
    dt_result_t r;

    for (int i = 0; i < GUESTS; i++)
        m.guests[i].shake.fd = -1;
    r = meet(&m);
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
