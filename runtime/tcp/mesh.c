#include "runtime/tcp/mesh.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/wire/inet.h"

enum {
    RETRY_MS = 100, /* after a refused connection */
    GLANCE_MS = 10, /* another thread may have accepted the connection that this one waits for */
};

struct connect_attempt { /* an attempt to connect to a higher rank */
    struct dt_mesh_link *link;
    struct dt_auth auth;
    struct dt_handshake shake;
    int64_t retry_at;
    int64_t deadline; /* for the peer's kernel to answer; the peer itself may take longer */
    int error;        /* why the last attempt failed */
};

struct mesh_connect {
    struct dt_mesh *mesh;
    const uint32_t *peers;
    size_t n;
    uint32_t streams;
    size_t awaited;  /* connections still missing, in both directions */
    size_t incoming; /* those of them that lower ranks make */
    size_t n_attempts;
    struct connect_attempt *attempts;
    struct pollfd *polls; /* of the alarm, the attempts and the listener */
};

uint32_t dt_mesh_rank(const struct dt_mesh *m, uint32_t peer)
{
    return m->ranks ? m->ranks[peer] : peer;
}

dt_result_t dt_mesh_no_memory(const struct dt_mesh *m)
{
    return dt_coll_error(m->alarm.coll_error, DT_ERR_NOMEM, dt_mesh_rank(m, m->me));
}

void dt_mesh_close(struct dt_mesh *m)
{
    for (size_t i = 0; i < m->n_links; i++) {
        if (m->links[i].fd >= 0)
            close(m->links[i].fd);
    }
    free(m->links);
    free(m->legs);
    free(m->polls);
    m->links = NULL;
    m->legs = NULL;
    m->polls = NULL;
    m->n_links = m->room = 0;
}

/* The number by which both ends identify a connection: different for every stream of every mesh of
 * a communicator. */
static uint32_t connection_of_stream(const struct dt_mesh *m, uint32_t stream)
{
    return stream * DT_MESHES + m->number;
}

static void attempt_failed(struct connect_attempt *c)
{
    int64_t now = dt_clock_ms();

    c->error = errno;
    c->retry_at = now + RETRY_MS;
    if (c->shake.fd < 0)
        return;
    if (dt_handshake_is_connected(&c->shake))
        c->deadline = now + DT_MESH_CONNECT_S * 1000;
    close(c->shake.fd);
    c->shake.fd = -1;
}

static void attempt_start(const struct mesh_connect *g, struct connect_attempt *c)
{
    const struct dt_msg_addr *a = &g->mesh->addrs[c->auth.peer];
    int fd = dt_inet_connect(a->host, a->port);

    if (fd < 0)
        attempt_failed(c);
    else
        dt_handshake_call(&c->shake, fd, &c->auth);
}

static bool is_attempting(const struct connect_attempt *c)
{
    return c->link->fd < 0;
}

static void attempt_step(struct mesh_connect *g, struct connect_attempt *c)
{
    enum dt_verdict verdict = dt_handshake_calling(&c->shake, &c->auth);

    if (verdict == DT_SHAKE_FAILED)
        attempt_failed(c);
    if (verdict != DT_SHAKE_THROUGH)
        return;
    c->link->fd = c->shake.fd;
    c->shake.fd = -1;
    g->awaited--;
}

/* Too few descriptors, or too little memory: waiting does not help. */
static dt_result_t fail_for_lack(const struct dt_mesh *m, int error)
{
    if (error == ENOMEM)
        return dt_mesh_no_memory(m);
    dt_coll_error(m->alarm.coll_error, DT_ERR_IO, dt_mesh_rank(m, m->me));
    m->alarm.coll_error->error = error;
    return DT_ERR_IO;
}

/* Starts attempts that are due, and ends those that are too late. */
static dt_result_t start_due_attempts(struct mesh_connect *g)
{
    int64_t now = dt_clock_ms();

    for (size_t i = 0; i < g->n_attempts; i++) {
        struct connect_attempt *c = &g->attempts[i];
        bool idle = c->shake.fd < 0;

        if (!is_attempting(c))
            continue;
        if ((idle || !dt_handshake_is_connected(&c->shake)) && now >= c->deadline) {
            dt_coll_error(g->mesh->alarm.coll_error, DT_ERR_TIMEOUT, c->auth.peer);
            g->mesh->alarm.coll_error->error = c->error;
            return DT_ERR_TIMEOUT;
        }
        if (idle && now >= c->retry_at)
            attempt_start(g, c);
        if (c->shake.fd < 0 && (c->error == EMFILE || c->error == ENFILE))
            return fail_for_lack(g->mesh, c->error);
    }
    return DT_OK;
}

static void take_accepted_of(struct mesh_connect *g, uint32_t stream)
{
    struct dt_mesh *m = g->mesh;

    for (size_t i = 0; i < g->n && g->incoming; i++) {
        struct dt_mesh_link *link = dt_mesh_link(m, g->peers[i], stream);

        if (link->fd >= 0 || g->peers[i] > m->me)
            continue;
        link->fd = dt_listener_take(m->listener, m->comm, connection_of_stream(m, stream),
                                    dt_mesh_rank(m, g->peers[i]));
        if (link->fd >= 0) {
            g->awaited--;
            g->incoming--;
        }
    }
}

static void take_accepted(struct mesh_connect *g)
{
    for (uint32_t stream = 0; stream < g->streams; stream++)
        take_accepted_of(g, stream);
}

static dt_result_t poll_connections(struct mesh_connect *g)
{
    struct dt_mesh *m = g->mesh;
    size_t n = DT_ALARM_FDS;

    for (size_t i = 0; i < g->n_attempts; i++) {
        const struct dt_handshake *s = &g->attempts[i].shake;

        g->polls[n++] = (struct pollfd){ .fd = s->fd, .events = s->sending ? POLLOUT : POLLIN };
    }
    if (g->incoming)
        n += dt_listener_polls(m->listener, g->polls + n);
    return dt_alarm_poll(&m->alarm, g->polls, n, g->incoming ? GLANCE_MS : RETRY_MS);
}

/* A peer may wait for data that this rank has sent and that are lost. */
static dt_result_t check_lost(const struct dt_mesh *m)
{
    uint32_t rank;

    return dt_listener_lost(m->listener, &rank)
               ? dt_coll_error(m->alarm.coll_error, DT_ERR_PEER, rank)
               : DT_OK;
}

dt_result_t dt_mesh_serve(const struct dt_mesh *m)
{
    dt_listener_turn(m->listener);
    dt_listener_leave(m->listener);
    return check_lost(m);
}

static dt_result_t await_connections(struct mesh_connect *g)
{
    dt_result_t result = dt_alarm_check(&g->mesh->alarm);

    while (result == DT_OK) {
        int error;

        for (size_t i = 0; i < g->n_attempts; i++) {
            if (g->attempts[i].shake.fd >= 0)
                attempt_step(g, &g->attempts[i]);
        }
        error = g->incoming ? dt_listener_turn(g->mesh->listener) : 0;
        take_accepted(g);
        if (g->awaited == 0)
            return DT_OK;
        result = error ? fail_for_lack(g->mesh, error) : check_lost(g->mesh);
        if (result == DT_OK)
            result = start_due_attempts(g);
        if (result == DT_OK)
            result = poll_connections(g);
    }
    return result;
}

static void plan_connection(struct mesh_connect *g, uint32_t peer, uint32_t stream)
{
    struct dt_mesh *m = g->mesh;
    struct dt_mesh_link *link = dt_mesh_link(m, peer, stream);
    struct connect_attempt *c = &g->attempts[g->n_attempts];

    if (link->needed)
        return;
    link->needed = true;
    g->awaited++;
    if (peer < m->me) {
        g->incoming++;
        return;
    }
    g->n_attempts++;
    *c = (struct connect_attempt){ .link = link,
                                   .auth = m->listener->self,
                                   .shake = { .fd = -1 },
                                   .deadline = dt_clock_ms() + DT_MESH_CONNECT_S * 1000 };
    c->auth.peer = dt_mesh_rank(m, peer);
    c->auth.comm = m->comm;
    c->auth.connection = connection_of_stream(m, stream);
}

static void plan_connections(struct mesh_connect *g)
{
    for (uint32_t stream = 0; stream < g->streams; stream++) {
        for (size_t i = 0; i < g->n; i++)
            plan_connection(g, g->peers[i], stream);
    }
}

static dt_result_t connect_all(struct dt_mesh *m, const uint32_t *peers, size_t n, uint32_t streams)
{
    struct mesh_connect g = { .mesh = m, .peers = peers, .n = n, .streams = streams };
    dt_result_t result = DT_ERR_NOMEM;
    size_t most = n * streams;

    g.attempts = calloc(most, sizeof *g.attempts);
    g.polls = calloc(DT_ALARM_FDS + most + DT_LISTENER_POLLS, sizeof *g.polls);
    if (g.attempts && g.polls) {
        bool listens;

        plan_connections(&g);
        listens = g.incoming > 0;
        result = await_connections(&g);
        if (listens)
            dt_listener_leave(m->listener);
        for (size_t i = 0; i < g.n_attempts; i++) {
            if (g.attempts[i].shake.fd >= 0)
                close(g.attempts[i].shake.fd);
        }
        sodium_memzero(g.attempts, most * sizeof *g.attempts);
    } else {
        dt_mesh_no_memory(m);
    }
    free(g.attempts);
    free(g.polls);
    return result;
}

static dt_result_t make_links(struct dt_mesh *m, size_t n)
{
    struct dt_mesh_link *links = realloc(m->links, n * sizeof *links);

    if (!links)
        return dt_mesh_no_memory(m);
    m->links = links;
    for (; m->n_links < n; m->n_links++)
        links[m->n_links] = (struct dt_mesh_link){ .fd = -1 };
    return DT_OK;
}

bool dt_mesh_has(const struct dt_mesh *m, uint32_t peer, uint32_t streams)
{
    if (m->n_links < (size_t)streams * m->size)
        return false;
    for (uint32_t stream = 0; stream < streams; stream++) {
        if (dt_mesh_link(m, peer, stream)->fd < 0)
            return false;
    }
    return true;
}

dt_result_t dt_mesh_need(struct dt_mesh *m, const uint32_t *peers, size_t n, uint32_t streams)
{
    size_t there = 0, links = (size_t)streams * m->size;

    while (there < n && dt_mesh_has(m, peers[there], streams))
        there++;
    if (there == n)
        return DT_OK;
    if (m->n_links < links && make_links(m, links) != DT_OK)
        return DT_ERR_NOMEM;
    return connect_all(m, peers, n, streams);
}

static uint32_t link_stream(const struct dt_mesh *m, const struct dt_mesh_link *link)
{
    return (uint32_t)((size_t)(link - m->links) / m->size);
}

static void replace_link(struct dt_mesh_link *link, int fd)
{
    if (fd < 0)
        return;
    close(link->fd);
    *link = (struct dt_mesh_link){ .fd = fd, .needed = true };
}

void dt_mesh_renew(struct dt_mesh *m, struct dt_mesh_link *link)
{
    uint32_t peer = dt_mesh_peer(m, link);

    if (peer > m->me)
        return;
    dt_listener_turn(m->listener);
    replace_link(link, dt_listener_take(m->listener, m->comm,
                                        connection_of_stream(m, link_stream(m, link)),
                                        dt_mesh_rank(m, peer)));
    dt_listener_leave(m->listener);
}

void dt_mesh_use(struct dt_mesh *m, struct dt_mesh_link *link)
{
    uint32_t peer = dt_mesh_peer(m, link);

    if (peer < m->me)
        replace_link(link, dt_listener_use(m->listener, m->comm,
                                           connection_of_stream(m, link_stream(m, link)),
                                           dt_mesh_rank(m, peer)));
    link->used = true;
}
