#include "launcher/remote/dial.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/remote/limit.h"
#include "launcher/remote/resolve.h"
#include "launcher/remote/ssh/ssherror.h"

struct dt_dial {
    uv_loop_t *loop;
    struct dt_resolve *resolve; /* NULL once it has answered */
    char *hostname;
    uv_connect_t connect;
    struct dt_limit limit;
    uv_tcp_t *tcp; /* the connection that is being made or has been made */
    struct addrinfo *list;
    struct addrinfo *next;
    int port;
    int timeout_s;
    bool cancelled;
    bool connected;
    bool expired;
    struct dt_error err;
    dt_dial_f done;
    void *arg;
};

static void on_dial_closed(uv_handle_t *handle)
{
    struct dt_dial *d = handle->data;

    if (d->list)
        freeaddrinfo(d->list);
    d->done(d->arg, d->connected ? d->tcp : NULL, &d->err);
    free(d->hostname);
    free(d);
}

static void finish_dial(struct dt_dial *d)
{
    uv_close((uv_handle_t *)&d->limit.timer, on_dial_closed);
}

static void try_next(struct dt_dial *d);

static void on_failed_closed(uv_handle_t *handle)
{
    struct dt_dial *d = handle->data;

    free(handle);
    d->tcp = NULL;
    try_next(d);
}

static void note_failure(struct dt_dial *d, int status)
{
    char addr[64] = "?";

    uv_ip_name(d->next->ai_addr, addr, sizeof addr);
    if (d->expired)
        dt_error_set(&d->err,
                     "connect: port %d at %s: no answer for %d s; is the host up, and the "
                     "port open in its firewall?",
                     d->port, addr, d->timeout_s);
    else
        dt_error_set(&d->err, "connect: port %d at %s: %s; is the host up, and sshd running there?",
                     d->port, addr, strerror(-status));
}

static void on_connected(uv_connect_t *req, int status)
{
    struct dt_dial *d = req->data;

    uv_timer_stop(&d->limit.timer);
    if (status == 0 && !d->cancelled) {
        d->connected = true;
        finish_dial(d);
        return;
    }
    note_failure(d, status);
    d->next = d->next->ai_next;
    if (!uv_is_closing((uv_handle_t *)d->tcp))
        uv_close((uv_handle_t *)d->tcp, on_failed_closed);
}

/* Closing the handle makes libuv call on_connected with UV_ECANCELED. */
static void on_expired(uv_timer_t *timer)
{
    struct dt_dial *d = timer->data;

    d->expired = true;
    uv_close((uv_handle_t *)d->tcp, on_failed_closed);
}

static void try_next(struct dt_dial *d)
{
    int rc;

    if (!d->next || d->cancelled) {
        finish_dial(d);
        return;
    }
    d->expired = false;
    d->tcp = dt_xcalloc(1, sizeof *d->tcp);
    uv_tcp_init(d->loop, d->tcp);
    d->tcp->data = d;
    d->connect.data = d;
    dt_limit_start(&d->limit, on_expired, (uint64_t)d->timeout_s * 1000);
    rc = uv_tcp_connect(&d->connect, d->tcp, d->next->ai_addr, on_connected);
    if (rc)
        on_connected(&d->connect, rc);
}

static void on_resolved(void *arg, struct addrinfo *list, const char *why)
{
    struct dt_dial *d = arg;

    d->resolve = NULL;
    if (!list)
        dt_ssherror_unresolved(&d->err, d->hostname, why, (int)strlen(why));
    d->list = d->next = list;
    try_next(d);
}

struct dt_dial *dt_dial_open(uv_loop_t *loop, const char *hostname, int port, int timeout_s,
                             dt_dial_f done, void *arg)
{
    struct dt_dial *d = dt_xcalloc(1, sizeof *d);

    d->loop = loop;
    d->hostname = dt_xstrdup(hostname);
    d->port = port;
    d->timeout_s = timeout_s;
    d->done = done;
    d->arg = arg;
    uv_timer_init(loop, &d->limit.timer);
    d->limit.timer.data = d;
    d->resolve = dt_resolve_open(loop, hostname, port, on_resolved, d);
    return d;
}

void dt_dial_cancel(struct dt_dial *d)
{
    d->cancelled = true;
    if (d->resolve)
        dt_resolve_cancel(d->resolve);
    else if (d->tcp && !d->connected && !uv_is_closing((uv_handle_t *)d->tcp))
        uv_close((uv_handle_t *)d->tcp, on_failed_closed);
}

const char *dt_dial_phase(const struct dt_dial *d)
{
    return d->resolve ? "resolve" : "connect";
}
