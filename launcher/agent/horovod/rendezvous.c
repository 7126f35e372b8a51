#include "launcher/agent/horovod/rendezvous.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "launcher/agent/horovod/answer.h"
#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/base/openfiles.h"
#include "launcher/base/uvloop.h"
#include "runtime/wire/inet.h"

enum {
    IDLE_MS = 10 * 1000,    /* without a further byte */
    REQUEST_MS = 60 * 1000, /* for the whole request */
    HOLD_MS = 1000,         /* how long a request waits for a missing key */
    TICK_MS = 500,
    /* Within this time after it has connected, a client of Horovod sends its request. */
    ARRIVAL_MS = 100,
    EXHAUSTED_MS = 50,
    CLIENTS_MAX = 4096,
    CLIENTS_BESIDE = 16, /* besides two for each rank: one asks, one has just been answered */
    ACCEPTS = 16,        /* in a row, before other events are handled */
    PIECE = 16 * 1024,
};

/* WAITING: for the key that it has asked for. Clients in later stages are closed first. */
enum stage { ANSWERING, ASKING, WAITING, LEAVING };

struct client {
    uv_poll_t poll;
    struct dt_rendezvous *owner;
    struct client *next, *prev; /* the newest first */
    int fd;
    enum stage stage;
    uint64_t began_ns;
    uint64_t moved_ns;
    struct dt_httprequest request;
    struct dt_answer answer;
    size_t sent;
};

struct dt_rendezvous {
    uv_loop_t *loop;
    struct dt_rendezvous_events events;
    void *arg;
    struct dt_kvlimits limits;
    struct dt_kvstore *store;
    uv_poll_t poll; /* polls the listener */
    uv_timer_t timer;
    int handles; /* how many of the two are not closed */
    int listener;
    uint16_t port;
    char *addr;
    bool reported;  /* the overflow was reported */
    bool exhausted; /* no room or no descriptor was left for a client */
    struct client *clients;
    unsigned n, max;
};

static void client_step(struct client *c);
static void on_caller(uv_poll_t *poll, int status, int events);

/* ---- clients come and go ---- */

static void client_close(struct client *c)
{
    struct dt_rendezvous *r = c->owner;

    *(c->prev ? &c->prev->next : &r->clients) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    r->n--;
    uv_close((uv_handle_t *)&c->poll, dt_uvloop_free_data);
    close(c->fd);
    dt_httprequest_free(&c->request);
    dt_answer_free(&c->answer);
}

static void client_open(struct dt_rendezvous *r, int fd)
{
    struct client *c = dt_xcalloc(1, sizeof *c);

    c->owner = r;
    c->fd = fd;
    c->stage = ASKING;
    c->began_ns = c->moved_ns = dt_now_ns();
    c->next = r->clients;
    if (c->next)
        c->next->prev = c;
    r->clients = c;
    r->n++;
    dt_httprequest_init(&c->request, r->limits.body);
    uv_poll_init(r->loop, &c->poll, fd);
    c->poll.data = c;
    client_step(c);
}

/* Returns the oldest client of the latest stage. */
static struct client *least_wanted(const struct dt_rendezvous *r)
{
    struct client *found = r->clients;

    for (struct client *c = r->clients; c; c = c->next) {
        if (c->stage >= found->stage)
            found = c;
    }
    return found;
}

static void answer(struct client *c)
{
    c->stage = ANSWERING;
    client_step(c);
}

/* Returns whether one more client may come. If all clients have only just come themselves, the next
 * one must wait outside. */
static bool make_room(struct dt_rendezvous *r)
{
    struct client *c;

    if (r->n < r->max)
        return true;
    c = least_wanted(r);
    if (c->stage == WAITING)
        answer(c);
    else if (c->stage != LEAVING && dt_now_ns() < c->began_ns + ARRIVAL_MS * 1000000ull)
        return false;
    if (!uv_is_closing((uv_handle_t *)&c->poll))
        client_close(c);
    return true;
}

/* ---- what clients ask ---- */

static void on_client(uv_poll_t *poll, int status, int events)
{
    (void)status; /* read or write reports the error */
    (void)events;
    client_step(poll->data);
}

static void say_overflow(struct dt_rendezvous *r, const struct client *c)
{
    int status = c->answer.status;
    char *text;

    if (r->reported || (status != 413 && status != 507))
        return;
    r->reported = true;
    text = dt_xasprintf("Horovod's rendezvous refused a request (%s): the ranks ask for more than "
                        "they need to find each other, or another program sends requests",
                        dt_answer_reason(status));
    r->events.overflow(r->arg, text);
    free(text);
}

/* Answers the clients that wait for the key that has just been put. */
static void answer_waiting(struct dt_rendezvous *r, const char *key)
{
    struct client *next;

    for (struct client *c = r->clients; c; c = next) {
        next = c->next;
        if (c->stage != WAITING || strcmp(c->request.target, key) != 0)
            continue;
        dt_answer_make(&c->answer, &c->request, r->store);
        answer(c);
    }
}

/* A missing key will be there soon, because ranks publish theirs at the same time. Answering 404
 * only if it does not come saves connections: Horovod's client asks again after 10 ms, with a new
 * connection, and has no timeout while it reads. */
static void take_request(struct client *c)
{
    const struct dt_httprequest *q = &c->request;

    dt_answer_make(&c->answer, &c->request, c->owner->store);
    c->stage = c->answer.status == DT_ANSWER_NOT_FOUND ? WAITING : ANSWERING;
    say_overflow(c->owner, c);
    if (q->method == DT_HTTP_PUT && c->answer.status == DT_ANSWER_OK)
        answer_waiting(c->owner, q->target);
}

/* Returns whether there may be more bytes. */
static bool read_request(struct client *c)
{
    static uint8_t bytes[PIECE];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        client_close(c);
        return false;
    }
    c->moved_ns = dt_now_ns();
    if (dt_httprequest_input(&c->request, bytes, (size_t)n) == DT_HTTP_MORE)
        return true;
    take_request(c);
    return true;
}

static ssize_t send_rest(const struct client *c)
{
    const struct dt_answer *a = &c->answer;
    size_t head_sent = c->sent < a->head_n ? c->sent : a->head_n, body_sent = c->sent - head_sent;
    size_t body_n = a->value ? a->value->n : 0;
    struct iovec parts[2] = {
        { (char *)(uintptr_t)a->head + head_sent, a->head_n - head_sent },
        { body_n ? a->value->bytes + body_sent : NULL, body_n - body_sent },
    };
    const struct msghdr m = { .msg_iov = parts, .msg_iovlen = body_n ? 2 : 1 };

    return sendmsg(c->fd, &m, MSG_NOSIGNAL);
}

static bool write_answer(struct client *c)
{
    const struct dt_answer *a = &c->answer;
    ssize_t n = send_rest(c);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < 0) {
        client_close(c);
        return false;
    }
    c->moved_ns = dt_now_ns();
    c->sent += (size_t)n;
    if (c->sent == a->head_n + (a->value ? a->value->n : 0)) {
        shutdown(c->fd, SHUT_WR);
        c->stage = LEAVING;
    }
    return true;
}

/* Closing the connection while bytes of a refused request arrive would discard the answer. These
 * bytes do not count as activity, so a client that continues to send is not read for longer. */
static bool read_to_end(struct client *c)
{
    static uint8_t ignored[PIECE];
    ssize_t n = recv(c->fd, ignored, sizeof ignored, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        client_close(c);
    return false;
}

/* Anything that a waiting client sends is not part of its request. If it has closed its side, it is
 * answered at once. */
static bool read_while_waiting(struct client *c)
{
    static uint8_t ignored[PIECE];
    ssize_t n = recv(c->fd, ignored, sizeof ignored, 0);

    if (n == 0)
        c->stage = ANSWERING;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        client_close(c);
    return n == 0;
}

static void client_step(struct client *c)
{
    static bool (*const steps[])(struct client *) = {
        [ASKING] = read_request,
        [WAITING] = read_while_waiting,
        [ANSWERING] = write_answer,
        [LEAVING] = read_to_end,
    };

    while (steps[c->stage](c))
        continue;
    if (!uv_is_closing((uv_handle_t *)&c->poll))
        uv_poll_start(&c->poll, c->stage == ANSWERING ? UV_WRITABLE : UV_READABLE, on_client);
}

/* ---- time ---- */

static bool is_over(const struct client *c, uint64_t now)
{
    return now > c->moved_ns + IDLE_MS * 1000000ull || now > c->began_ns + REQUEST_MS * 1000000ull;
}

static void on_rendezvous_tick(uv_timer_t *timer);

static void wake(struct dt_rendezvous *r)
{
    if (r->exhausted)
        uv_timer_start(&r->timer, on_rendezvous_tick, EXHAUSTED_MS, 0);
    else if (r->clients && !uv_is_active((uv_handle_t *)&r->timer))
        uv_timer_start(&r->timer, on_rendezvous_tick, TICK_MS, 0);
}

/* An agent that did not run for a while reads what arrived in time before it closes clients. */
static void on_rendezvous_tick(uv_timer_t *timer)
{
    struct dt_rendezvous *r = timer->data;
    uint64_t now = dt_now_ns();
    struct client *next;

    for (struct client *c = r->clients; c; c = next) {
        next = c->next;
        if (uv_is_closing((uv_handle_t *)&c->poll))
            continue; /* another client has put the value that it waited for */
        if (c->stage == WAITING && now > c->moved_ns + HOLD_MS * 1000000ull)
            answer(c);
        if (uv_is_closing((uv_handle_t *)&c->poll) || !is_over(c, now))
            continue;
        client_step(c);
        if (!uv_is_closing((uv_handle_t *)&c->poll) && is_over(c, now))
            client_close(c);
    }
    if (r->exhausted) {
        r->exhausted = false;
        uv_poll_start(&r->poll, UV_READABLE, on_caller);
    }
    wake(r);
}

/* ---- the server ---- */

static void stop_listening(struct dt_rendezvous *r)
{
    r->exhausted = true;
    uv_poll_stop(&r->poll);
}

/* Returns false if no client is waiting, or none can be accepted. */
static bool accept_one(struct dt_rendezvous *r)
{
    int fd;

    if (!make_room(r)) {
        stop_listening(r);
        return false;
    }
    fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            stop_listening(r);
        return false;
    }
    if (r->addr && !dt_inet_is_at(fd, r->addr)) {
        close(fd);
        return true;
    }
    client_open(r, fd);
    return true;
}

static void on_caller(uv_poll_t *poll, int status, int events)
{
    struct dt_rendezvous *r = poll->data;

    (void)status; /* accept reports the error */
    (void)events;
    /* If the server is full, accepts only one client at a time, so that no client is closed in
     * favour of one that may not exist. */
    for (int i = 0; i < (r->n < r->max ? ACCEPTS : 1) && accept_one(r); i++)
        continue;
    wake(r);
}

/* Ranks need the other files. */
static unsigned clients_allowed(uint32_t np)
{
    return dt_openfiles_for_strangers(np < CLIENTS_MAX / 2 ? 2 * np + CLIENTS_BESIDE : CLIENTS_MAX);
}

struct dt_rendezvous *dt_rendezvous_create(uv_loop_t *loop, uint32_t np,
                                           const struct dt_rendezvous_events *events, void *arg)
{
    uint16_t port;
    int listener = dt_inet_listen(&port);
    struct dt_rendezvous *r;

    if (listener < 0)
        return NULL;
    r = dt_xcalloc(1, sizeof *r);
    *r = (struct dt_rendezvous){
        .loop = loop,
        .events = *events,
        .arg = arg,
        .limits = dt_kvlimits_of(np),
        .listener = listener,
        .port = port,
        .max = clients_allowed(np),
        .handles = 2,
    };
    r->store = dt_kvstore_create(&r->limits);
    uv_poll_init(loop, &r->poll, listener);
    uv_timer_init(loop, &r->timer);
    r->poll.data = r->timer.data = r;
    return r;
}

uint16_t dt_rendezvous_port(const struct dt_rendezvous *r)
{
    return r->port;
}

void dt_rendezvous_open(struct dt_rendezvous *r, const char *addr)
{
    r->addr = addr ? dt_xstrdup(addr) : NULL;
    uv_poll_start(&r->poll, UV_READABLE, on_caller);
}

/* Clients may outlive the server by one turn of the loop. They do not use it, because they are
 * closed by then. */
static void on_rendezvous_closed(uv_handle_t *handle)
{
    struct dt_rendezvous *r = handle->data;

    if (--r->handles)
        return;
    dt_kvstore_destroy(r->store);
    free(r->addr);
    free(r);
}

void dt_rendezvous_destroy(struct dt_rendezvous *r)
{
    if (!r)
        return;
    while (r->clients)
        client_close(r->clients);
    uv_close((uv_handle_t *)&r->poll, on_rendezvous_closed);
    uv_close((uv_handle_t *)&r->timer, on_rendezvous_closed);
    close(r->listener);
}
