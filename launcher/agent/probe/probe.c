#include "launcher/agent/probe/probe.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/agent/probe/probepath.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/openfiles.h"
#include "launcher/base/uvloop.h"
#include "runtime/wire/inet.h"

enum {
    CONNECT_MS = 5000,    /* the other kernel answers at once, or never */
    HANDSHAKE_MS = 30000, /* the other agent may not have received its PROBE yet */
    STAGGER_MS = 250,     /* after that the next address of a target is tried as well */
    RETRY_MS = 100,       /* after the other side hung up during the handshake */
    EXHAUSTED_MS = 50,
    INCOMING_MS = 1000, /* how often incoming connections are checked for expiry */
    INCOMING_MAX = 1024,
};

struct conn {
    uv_poll_t poll;
    struct dt_probe *probe;
    struct attempt *attempt;  /* NULL: an incoming connection */
    struct conn *next, *prev; /* list of incoming connections, the newest first */
    bool unknown;             /* its hello matches no known PROBE; the next one may match */
    struct dt_probepath path;
};

struct attempt { /* an attempt to reach one address of one target */
    const struct dt_msg_target *target;
    struct dt_msg_reached result; /* state 0: undecided */
    uint64_t began_ns;            /* 0: not begun */
    uint64_t retry_ns;            /* while conn is NULL */
    struct conn *conn;
};

struct dt_probe {
    uv_loop_t *loop;
    struct dt_channel *channel;
    uv_poll_t poll; /* polls the listener */
    uv_timer_t timer;
    int listener;
    bool exhausted; /* no descriptor or memory was left for an incoming connection */
    struct dt_msg_probe job;
    bool begun;               /* job is valid */
    bool answered;            /* REACH was sent */
    struct attempt *attempts; /* by target; those of a target in order of preference */
    uint32_t n;
    struct conn *incoming;
    unsigned n_incoming, incoming_max;
};

static void on_event(uv_poll_t *poll, int status, int events);
static void on_caller(uv_poll_t *poll, int status, int events);
static void advance(struct dt_probe *p);

static uint64_t in_ms(uint64_t ms)
{
    return dt_now_ns() + ms * 1000000;
}

/* Shuts the connection down first: ranks that wait for GO hold copies of every descriptor, so
 * closing ours alone would not end it. */
static void conn_close(struct conn *c)
{
    struct dt_probe *p = c->probe;

    if (c->attempt) {
        c->attempt->conn = NULL;
    } else {
        *(c->prev ? &c->prev->next : &p->incoming) = c->next;
        if (c->next)
            c->next->prev = c->prev;
        p->n_incoming--;
    }
    uv_close((uv_handle_t *)&c->poll, dt_uvloop_free_data);
    shutdown(c->path.shake.fd, SHUT_RDWR);
    close(c->path.shake.fd);
}

static struct conn *conn_open(struct dt_probe *p, int fd, uint64_t patience_ms)
{
    struct conn *c = dt_xcalloc(1, sizeof *c);

    c->probe = p;
    c->path.deadline_ns = in_ms(patience_ms);
    uv_poll_init(p->loop, &c->poll, fd);
    c->poll.data = c;
    return c;
}

static void conn_wait(struct conn *c)
{
    uv_poll_start(&c->poll, dt_probepath_is_sending(&c->path) ? UV_WRITABLE : UV_READABLE,
                  on_event);
}

static struct dt_auth auth_for(const struct dt_probe *p, uint32_t peer)
{
    struct dt_auth a = {
        .generation = p->job.generation,
        .me = p->job.node,
        .peer = peer,
        .purpose = DT_AUTH_AGENTS,
    };

    memcpy(a.secret, p->job.secret, sizeof a.secret);
    return a;
}

static enum dt_verdict conn_step(struct conn *c)
{
    struct dt_auth a =
        auth_for(c->probe, c->attempt ? c->attempt->target->node : (uint32_t)DT_AUTH_ANYBODY);

    return dt_probepath_step(&c->path, &a, c->probe->job.bytes);
}

static void incoming_step(struct conn *c)
{
    enum dt_verdict verdict = c->probe->begun ? conn_step(c) : DT_SHAKE_UNKNOWN;

    c->unknown = verdict == DT_SHAKE_UNKNOWN;
    if (c->unknown)
        uv_poll_stop(&c->poll);
    else if (verdict == DT_SHAKE_PENDING)
        conn_wait(c);
    else
        conn_close(c);
}

static void decide(struct attempt *a, enum dt_reach_state state, int error)
{
    a->result.state = (uint8_t)state;
    a->result.error = error;
    if (a->conn)
        conn_close(a->conn);
}

static void attempt_failed(struct attempt *a, int error)
{
    struct conn *c = a->conn;
    enum dt_reach_state state = dt_probepath_failure(&c->path, error);

    /* The other side may have had too many connections, or may get its PROBE later than this agent.
     */
    if (state == DT_REACH_SILENT && error != ETIMEDOUT &&
        dt_now_ns() < a->began_ns + HANDSHAKE_MS * 1000000ull) {
        conn_close(c);
        a->retry_ns = in_ms(RETRY_MS);
    } else {
        decide(a, state, error);
    }
}

static void attempt_step(struct attempt *a)
{
    struct conn *c = a->conn;
    bool was_connected = dt_handshake_is_connected(&c->path.shake);
    enum dt_verdict verdict = conn_step(c);
    struct tcp_info info;
    socklen_t len = sizeof info;

    if (!was_connected && dt_probepath_is_shaking(&c->path))
        c->path.deadline_ns = in_ms(HANDSHAKE_MS);
    if (verdict == DT_SHAKE_PENDING) {
        conn_wait(c);
    } else if (verdict == DT_SHAKE_FAILED) {
        attempt_failed(a, errno);
    } else {
        if (getsockopt(c->path.shake.fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
            a->result.rtt_us = info.tcpi_rtt;
        a->result.bulk_ns = c->path.bulk_ns;
        a->result.both_ns = c->path.both_ns;
        decide(a, DT_REACH_OK, 0);
    }
}

static void attempt_begin(struct attempt *a, struct dt_probe *p)
{
    int fd = dt_inet_connect(a->target->addrs.v[a->result.addr], a->target->port);
    struct dt_auth auth = auth_for(p, a->target->node);

    if (!a->began_ns)
        a->began_ns = dt_now_ns();
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        a->retry_ns = in_ms(RETRY_MS);
        return;
    }
    if (fd < 0) {
        decide(a, DT_REACH_CONNECT, errno);
        return;
    }
    a->conn = conn_open(p, fd, CONNECT_MS);
    a->conn->attempt = a;
    dt_probepath_call(&a->conn->path, fd, &auth);
    conn_wait(a->conn);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct conn *c = poll->data;
    struct dt_probe *p = c->probe;

    (void)status; /* read or write reports the error */
    (void)events;
    if (c->attempt)
        attempt_step(c->attempt);
    else
        incoming_step(c);
    advance(p);
}

/* Returns the oldest incoming connection that is not authenticated. Other agents keep theirs: a
 * connection that ends while they send would look like a path that loses data. */
static struct conn *oldest_unauthenticated(struct dt_probe *p)
{
    struct conn *oldest = NULL;

    for (struct conn *c = p->incoming; c; c = c->next) {
        if (c->path.phase == DT_PATH_SHAKING)
            oldest = c;
    }
    return oldest;
}

/* Returns whether one more incoming connection may be accepted. */
static bool make_room(struct dt_probe *p)
{
    struct conn *victim;

    if (p->n_incoming < p->incoming_max)
        return true;
    victim = oldest_unauthenticated(p);
    if (victim)
        conn_close(victim);
    return victim;
}

static void on_caller(uv_poll_t *poll, int status, int events)
{
    struct dt_probe *p = poll->data;
    int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct conn *c;

    (void)status;
    (void)events;
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        return;
    if (fd < 0) {
        p->exhausted = true;
        uv_poll_stop(&p->poll);
        advance(p);
        return;
    }
    if (!make_room(p)) { /* an agent will call again */
        shutdown(fd, SHUT_RDWR);
        close(fd);
        return;
    }
    c = conn_open(p, fd, HANDSHAKE_MS);
    c->next = p->incoming;
    if (c->next)
        c->next->prev = c;
    p->incoming = c;
    p->n_incoming++;
    dt_probepath_host(&c->path, fd);
    incoming_step(c);
    advance(p);
}

/* Returns when attempt a may start: after the previous one of its target has failed or has had its
 * time. Once it has begun, returns the time of its next try. */
static uint64_t turn_of(const struct dt_probe *p, const struct attempt *a)
{
    const struct attempt *before = a - 1;

    if (a->began_ns || p->job.all || a->result.addr == 0 || before->result.state)
        return a->retry_ns;
    return before->began_ns ? before->began_ns + STAGGER_MS * 1000000ull : UINT64_MAX;
}

/* One working address is enough, unless the launcher asks about all. */
static bool is_settled(const struct dt_probe *p, const struct attempt *a)
{
    uint32_t left = a->target->addrs.n;

    for (a -= a->result.addr; left-- > 0 && !p->job.all; a++) {
        if (a->result.state == DT_REACH_OK)
            return true;
    }
    return false;
}

static void answer(struct dt_probe *p)
{
    struct dt_msg_reached *results = dt_xcalloc(p->n, sizeof *results);
    struct dt_msg_reach m = { p->job.generation, p->job.all, { results, 0 } };

    for (uint32_t i = 0; i < p->n; i++) {
        if (p->attempts[i].result.state)
            results[m.results.n++] = p->attempts[i].result;
    }
    p->answered = true;
    dt_channel_send(p->channel, DT_MSG_REACH, &m);
    free(results);
}

static bool is_over(const struct conn *c)
{
    return c->path.deadline_ns <= dt_now_ns();
}

/* An agent that did not run for a while finds that the deadline has passed before it has read what
 * arrived in time. */
static bool has_news(const struct conn *c)
{
    short events = dt_probepath_is_sending(&c->path) ? POLLOUT : POLLIN;

    return poll(&(struct pollfd){ .fd = c->path.shake.fd, .events = events }, 1, 0) > 0;
}

static void attempt_due(struct attempt *a)
{
    uint64_t last = a->began_ns + HANDSHAKE_MS * 1000000ull;

    if (has_news(a->conn))
        attempt_step(a);
    if (!a->conn || !is_over(a->conn))
        return;
    if (dt_probepath_has_arrived(&a->conn->path) && a->conn->path.deadline_ns < last)
        a->conn->path.deadline_ns = last;
    else
        attempt_failed(a, ETIMEDOUT);
}

static void incoming_due(struct conn *c)
{
    if (has_news(c))
        incoming_step(c);
    if (!uv_is_closing((uv_handle_t *)&c->poll) && is_over(c))
        conn_close(c);
}

static void on_probe_tick(uv_timer_t *timer)
{
    struct dt_probe *p = timer->data;
    struct conn *next;

    for (uint32_t i = 0; i < p->n; i++) {
        if (p->attempts[i].conn && is_over(p->attempts[i].conn))
            attempt_due(&p->attempts[i]);
    }
    for (struct conn *c = p->incoming; c; c = next) {
        next = c->next;
        if (is_over(c))
            incoming_due(c);
    }
    if (p->exhausted) {
        p->exhausted = false;
        uv_poll_start(&p->poll, UV_READABLE, on_caller);
    }
    advance(p);
}

/* Starts the attempt when its time has come. Returns when to call it again even if nothing happens,
 * or 0 if it is decided or not needed. */
static uint64_t attempt_advance(struct dt_probe *p, struct attempt *a)
{
    if (a->result.state)
        return 0;
    if (is_settled(p, a)) {
        if (a->conn)
            conn_close(a->conn);
        return 0;
    }
    if (!a->conn && turn_of(p, a) <= dt_now_ns())
        attempt_begin(a, p);
    if (a->result.state)
        return 0;
    return a->conn ? a->conn->path.deadline_ns : turn_of(p, a);
}

static void wake_at(struct dt_probe *p, uint64_t due)
{
    uint64_t now = dt_now_ns();

    if (due == UINT64_MAX)
        uv_timer_stop(&p->timer);
    else
        uv_timer_start(&p->timer, on_probe_tick, due > now ? (due - now) / 1000000 + 1 : 0, 0);
}

static void advance(struct dt_probe *p)
{
    uint64_t due = UINT64_MAX;
    bool waiting = false;

    for (uint32_t i = 0; i < p->n && !p->answered; i++) {
        uint64_t when = attempt_advance(p, &p->attempts[i]);

        waiting |= when != 0;
        if (when && when < due)
            due = when;
    }
    if (!waiting && p->begun && !p->answered)
        answer(p);
    if (p->incoming && in_ms(INCOMING_MS) < due)
        due = in_ms(INCOMING_MS);
    if (p->exhausted && in_ms(EXHAUSTED_MS) < due)
        due = in_ms(EXHAUSTED_MS);
    wake_at(p, due);
}

static void begin_listening(struct dt_probe *p, uint16_t *port)
{
    *port = 0;
    p->listener = sodium_init() < 0 ? -1 : dt_inet_listen(port);
    if (p->listener < 0)
        return;
    uv_poll_init(p->loop, &p->poll, p->listener);
    p->poll.data = p;
    uv_poll_start(&p->poll, UV_READABLE, on_caller);
}

struct dt_probe *dt_probe_create(uv_loop_t *loop, uint16_t *port)
{
    struct dt_probe *p = dt_xcalloc(1, sizeof *p);

    p->loop = loop;
    p->incoming_max = dt_openfiles_for_strangers(INCOMING_MAX); /* ranks need the other files */
    p->listener = -1;
    uv_timer_init(loop, &p->timer);
    p->timer.data = p;
    if (port)
        begin_listening(p, port);
    return p;
}

static void make_attempts(struct dt_probe *p)
{
    const struct dt_msg_target *targets = p->job.targets.v;
    uint32_t n = 0;

    for (uint32_t t = 0; t < p->job.targets.n; t++)
        n += targets[t].addrs.n;
    p->attempts = dt_xcalloc(n, sizeof *p->attempts);
    p->n = n;
    n = 0;
    for (uint32_t t = 0; t < p->job.targets.n; t++) {
        for (uint32_t k = 0; k < targets[t].addrs.n; k++)
            p->attempts[n++] = (struct attempt){
                .target = &targets[t],
                .result = { .node = targets[t].node, .addr = k },
            };
    }
}

void dt_probe_begin(struct dt_probe *p, struct dt_channel *channel, struct dt_msg_probe *m)
{
    struct conn *next;

    for (uint32_t i = 0; i < p->n; i++) {
        if (p->attempts[i].conn)
            conn_close(p->attempts[i].conn);
    }
    free(p->attempts);
    dt_msg_free(DT_MSG_PROBE, (union dt_msg *)&p->job);
    p->channel = channel;
    p->job = *m;
    *m = (struct dt_msg_probe){ 0 };
    p->begun = true;
    p->answered = false;
    make_attempts(p);
    for (struct conn *c = p->incoming; c; c = next) {
        next = c->next;
        if (c->unknown)
            incoming_step(c);
    }
    advance(p);
}
