#include "runtime/world/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/wire/highfd.h"
#include "runtime/wire/inet.h"

enum {
    GUEST_MS = 5000, /* how long a peer may take to prove the job's secret */
    SETTLE_MS = 500, /* it keeps its place this long even if another connection needs one */
};

void dt_listener_init(struct dt_listener *d)
{
    *d = (struct dt_listener){ .listener = -1 };
    pthread_mutex_init(&d->lock, NULL);
    for (int i = 0; i < DT_LISTENER_PENDING; i++)
        d->pending[i].shake.fd = -1;
}

int dt_listener_open(struct dt_listener *d, uint16_t *port)
{
    if (sodium_init() >= 0)
        d->listener = dt_inet_listen(port);
    return d->listener < 0 ? -1 : 0;
}

void dt_listener_admit(struct dt_listener *d, const uint8_t secret[DT_SECRET_BYTES],
                       uint32_t generation, uint32_t rank)
{
    d->self = (struct dt_auth){ .generation = generation, .me = rank, .peer = DT_AUTH_ANYBODY };
    memcpy(d->self.secret, secret, sizeof d->self.secret);
}

static void close_pending(struct dt_listener_pending *g)
{
    if (g->shake.fd >= 0)
        close(g->shake.fd);
    g->shake.fd = -1;
}

void dt_listener_close(struct dt_listener *d)
{
    for (int i = 0; i < DT_LISTENER_PENDING; i++)
        close_pending(&d->pending[i]);
    for (size_t i = 0; i < d->n_accepted; i++)
        close(d->accepted[i].fd);
    free(d->accepted);
    free(d->used);
    if (d->listener >= 0)
        close(d->listener);
    pthread_mutex_destroy(&d->lock);
    sodium_memzero(d, sizeof *d);
    dt_listener_init(d);
}

/* Ranks of the job answer at once. A peer that takes long is probably not one. */
static bool is_too_slow(const struct dt_listener_pending *g)
{
    return g->deadline - GUEST_MS + SETTLE_MS <= dt_clock_ms();
}

/* A free entry, or the handshake that has lasted longest. NULL: none may be dropped yet. */
static struct dt_listener_pending *free_pending_entry(struct dt_listener *d)
{
    struct dt_listener_pending *oldest = &d->pending[0];

    for (int i = 0; i < DT_LISTENER_PENDING; i++) {
        if (d->pending[i].shake.fd < 0)
            return &d->pending[i];
        if (d->pending[i].deadline < oldest->deadline)
            oldest = &d->pending[i];
    }
    return is_too_slow(oldest) ? oldest : NULL;
}

size_t dt_listener_polls(struct dt_listener *d, struct pollfd p[DT_LISTENER_POLLS])
{
    size_t n = 0;

    pthread_mutex_lock(&d->lock);
    p[n++] = (struct pollfd){ .fd = free_pending_entry(d) ? d->listener : -1, .events = POLLIN };
    for (int i = 0; i < DT_LISTENER_PENDING; i++) {
        const struct dt_handshake *s = &d->pending[i].shake;

        if (s->fd >= 0)
            p[n++] = (struct pollfd){ .fd = s->fd, .events = s->sending ? POLLOUT : POLLIN };
    }
    pthread_mutex_unlock(&d->lock);
    return n;
}

static bool is_connection(const struct dt_listener_accepted *p, uint64_t comm, uint32_t connection,
                          uint32_t rank)
{
    return p->comm == comm && p->connection == connection && p->rank == rank;
}

static bool is_used(const struct dt_listener *d, const struct dt_auth *who)
{
    for (size_t i = 0; i < d->n_used; i++) {
        if (is_connection(&d->used[i], who->comm, who->connection, who->me))
            return true;
    }
    return false;
}

static int take_accepted(struct dt_listener *d, uint64_t comm, uint32_t connection, uint32_t rank)
{
    for (size_t i = 0; i < d->n_accepted; i++) {
        struct dt_listener_accepted p = d->accepted[i];

        if (is_connection(&p, comm, connection, rank)) {
            d->accepted[i] = d->accepted[--d->n_accepted];
            return p.fd;
        }
    }
    return -1;
}

/* Makes room for all handshakes that may end well. */
static bool make_room(struct dt_listener *d)
{
    size_t room = d->n_accepted + DT_LISTENER_PENDING;
    struct dt_listener_accepted *p;

    if (d->room >= room)
        return true;
    p = realloc(d->accepted, room * sizeof *p);
    if (!p)
        return false;
    d->accepted = p;
    d->room = room;
    return true;
}

/* A rank whose connection broke connects again: the newer connection replaces the older. */
static void keep_accepted(struct dt_listener *d, struct dt_listener_pending *g)
{
    struct dt_auth who;
    int older;

    dt_auth_caller(g->shake.hello, &who);
    if (is_used(d, &who)) {
        d->has_lost = true;
        d->lost_by = who.me;
        return;
    }
    older = take_accepted(d, who.comm, who.connection, who.me);
    if (older >= 0)
        close(older);
    d->accepted[d->n_accepted++] =
        (struct dt_listener_accepted){ g->shake.fd, who.me, who.connection, who.comm };
    g->shake.fd = -1;
}

static void advance_handshake(struct dt_listener *d, struct dt_listener_pending *g)
{
    enum dt_verdict verdict = dt_handshake_hosting(&g->shake, &d->self);

    if (verdict == DT_SHAKE_THROUGH)
        keep_accepted(d, g);
    if (verdict != DT_SHAKE_PENDING || g->deadline <= dt_clock_ms())
        close_pending(g);
}

/* How long the peer has sent nothing. Peers that waited to be accepted have had time to send. 0:
 * the kernel does not know. Ranks send their hello at once and whole: a peer that has sent a part
 * of one perhaps only wants to look busy. */
static int64_t silence_ms(const struct dt_handshake *s)
{
    struct tcp_info info = { 0 };
    socklen_t len = sizeof info;

    if (s->at > 0)
        return SETTLE_MS;
    return getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_last_ack_recv : 0;
}

/* Accepts at most a queue's length, so that a peer that keeps connecting cannot hold up this
 * rank. */
static int accept_peers(struct dt_listener *d)
{
    struct dt_listener_pending *g;

    for (int i = 0; i < SOMAXCONN && (g = free_pending_entry(d)); i++) {
        int fd;

        if (!make_room(d))
            return ENOMEM;
        fd = dt_fd_high(accept4(d->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0)
            return errno == EMFILE || errno == ENFILE ? errno : 0;
        close_pending(g);
        dt_handshake_host(&g->shake, fd);
        g->deadline = dt_clock_ms() + GUEST_MS;
        advance_handshake(d, g);
        if (g->shake.fd >= 0 && dt_handshake_awaits_hello(&g->shake))
            g->deadline -= silence_ms(&g->shake);
    }
    return 0;
}

int dt_listener_turn(struct dt_listener *d)
{
    int error;

    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < DT_LISTENER_PENDING; i++) {
        if (d->pending[i].shake.fd >= 0)
            advance_handshake(d, &d->pending[i]);
    }
    error = accept_peers(d);
    pthread_mutex_unlock(&d->lock);
    return error;
}

void dt_listener_leave(struct dt_listener *d)
{
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < DT_LISTENER_PENDING; i++) {
        if (is_too_slow(&d->pending[i]))
            close_pending(&d->pending[i]);
    }
    pthread_mutex_unlock(&d->lock);
}

int dt_listener_take(struct dt_listener *d, uint64_t comm, uint32_t connection, uint32_t rank)
{
    int fd;

    pthread_mutex_lock(&d->lock);
    fd = take_accepted(d, comm, connection, rank);
    pthread_mutex_unlock(&d->lock);
    return fd;
}

int dt_listener_use(struct dt_listener *d, uint64_t comm, uint32_t connection, uint32_t rank)
{
    struct dt_listener_accepted *used;
    int fd;

    pthread_mutex_lock(&d->lock);
    fd = take_accepted(d, comm, connection, rank);
    used = realloc(d->used, (d->n_used + 1) * sizeof *used);
    if (used) {
        d->used = used;
        used[d->n_used++] = (struct dt_listener_accepted){
            .fd = -1, .rank = rank, .connection = connection, .comm = comm
        };
    }
    pthread_mutex_unlock(&d->lock);
    return fd;
}

bool dt_listener_lost(struct dt_listener *d, uint32_t *rank)
{
    bool lost;

    pthread_mutex_lock(&d->lock);
    lost = d->has_lost;
    *rank = d->lost_by;
    pthread_mutex_unlock(&d->lock);
    return lost;
}

static void forget_used(struct dt_listener *d, uint64_t comm)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->n_used; i++) {
        if (d->used[i].comm != comm)
            d->used[kept++] = d->used[i];
    }
    d->n_used = kept;
}

void dt_listener_forget(struct dt_listener *d, uint64_t comm)
{
    size_t kept = 0;

    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->n_accepted; i++) {
        if (d->accepted[i].comm == comm)
            close(d->accepted[i].fd);
        else
            d->accepted[kept++] = d->accepted[i];
    }
    d->n_accepted = kept;
    forget_used(d, comm);
    pthread_mutex_unlock(&d->lock);
}
