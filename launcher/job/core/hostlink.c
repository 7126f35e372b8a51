#include "launcher/job/core/hostlink.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/session/hostnet.h"

/* a report that comes later than this is of a new signal with the same number */
enum { LATE_MS = 10000 };

bool dt_hostlink_has_ranks(const struct dt_hostlink *h)
{
    return h && (h->phase == DT_HOST_STARTING || h->phase == DT_HOST_RUNNING);
}

static void forget_late(struct dt_hostlink *h, uint64_t now_ns)
{
    if (now_ns - h->late_ns >= LATE_MS * 1000000ull)
        h->late = 0;
}

void dt_hostlink_end_gathering(struct dt_hostlink *h, uint64_t reported, uint64_t now_ns)
{
    uint64_t late = reported & ~h->signalled;

    h->signalled &= ~reported;
    if (!late)
        return;
    forget_late(h, now_ns);
    h->late |= late;
    h->late_ns = now_ns;
}

bool dt_hostlink_take_late(struct dt_hostlink *h, uint64_t signal, uint64_t now_ns)
{
    bool late;

    forget_late(h, now_ns);
    late = h->late & signal;
    h->late &= ~signal;
    return late;
}

bool dt_hostlink_is_open(const struct dt_hostlink *h)
{
    return h->phase != DT_HOST_WAITING && h->phase != DT_HOST_CLOSED;
}

bool dt_hostlink_is_opening(const struct dt_hostlink *h)
{
    return h->phase == DT_HOST_WAITING || h->phase == DT_HOST_CONNECTING ||
           h->phase == DT_HOST_RECEIVING;
}

const char *dt_hostlink_awaits(const struct dt_hostlink *h)
{
    switch (h->phase) {
    case DT_HOST_WAITING:
        return "wait for its turn (--fanout)";
    case DT_HOST_CONNECTING:
        return h->shared->ops->phase(h->shared->ops->arg, h->host);
    case DT_HOST_RECEIVING:
        return "receive files (--push)";
    case DT_HOST_STARTING:
        if (h->probing)
            return "try to reach the other hosts";
        return h->ready ? NULL : "start the ranks";
    default:
        return NULL;
    }
}

static uint64_t now_ns(const struct dt_hostlink *h)
{
    return h->shared->ops->now_ns(h->shared->ops->arg);
}

static void set_phase(struct dt_hostlink *h, enum dt_host_phase phase)
{
    if (phase == DT_HOST_CLOSED && dt_hostlink_has_ranks(h) && h->went)
        h->orphans_ns = h->sent_ns;
    h->shared->connecting -= h->phase == DT_HOST_CONNECTING;
    h->shared->connecting += phase == DT_HOST_CONNECTING;
    h->phase = phase;
}

void dt_hostlink_greeted(struct dt_hostlink *h, const struct dt_msg_hello *hello)
{
    h->identity = dt_xstrdup(hello->identity);
    h->addr = dt_xstrdup(hello->addr);
    h->peer_addr = dt_xstrdup(hello->peer_addr);
    h->free_port = hello->free_port;
    h->probe_port = hello->probe_port;
    h->netaddrs = dt_netaddrs_copy(&hello->addrs);
    h->in_step = hello->in_step;
    set_phase(h, DT_HOST_RECEIVING);
    dt_heartbeat_hello(&h->heartbeat, hello->time_ns, now_ns(h));
}

void dt_hostlink_pushed(struct dt_hostlink *h, const char *dir)
{
    h->dir = dt_xstrdup(dir);
    set_phase(h, DT_HOST_IDLE);
}

enum dt_host_phase dt_hostlink_ended(struct dt_hostlink *h, const char *why)
{
    enum dt_host_phase was = h->phase;

    set_phase(h, DT_HOST_CLOSED);
    dt_error_set(&h->why, "%s", why);
    h->closing = false;
    return was;
}

struct dt_hostlink *dt_hostlink_new(struct dt_hostlinks_shared *shared, size_t host,
                                    const struct dt_hostlink *before)
{
    struct dt_hostlink *h = dt_xcalloc(1, sizeof *h);

    h->shared = shared;
    h->host = host;
    h->phase = DT_HOST_WAITING;
    if (before) {
        h->orphans_ns = before->orphans_ns;
        h->closing_aside = before->closing_aside;
        h->why = before->why;
        h->closing = before->closing;
    }
    return h;
}

void dt_hostlink_connect(struct dt_hostlink *h)
{
    set_phase(h, DT_HOST_CONNECTING);
    h->opened_ns = now_ns(h);
    h->shared->ops->open(h->shared->ops->arg, h->host);
}

void dt_hostlink_send_frames(struct dt_hostlink *h, uint8_t type, const struct dt_put *frames)
{
    if (!dt_hostlink_is_open(h) || h->phase == DT_HOST_CONNECTING)
        return;
    h->ending |= type == DT_MSG_END;
    h->went |= type == DT_MSG_GO;
    h->sent_ns = now_ns(h);
    h->shared->ops->send(h->shared->ops->arg, h->host, type, frames);
}

void dt_hostlink_send(struct dt_hostlink *h, uint8_t type, const void *msg)
{
    struct dt_put frames = { 0 };

    dt_msg_frame(&frames, type, msg);
    dt_hostlink_send_frames(h, type, &frames);
    dt_put_free(&frames);
}

void dt_hostlink_put_off(struct dt_hostlink *h)
{
    bool open = dt_hostlink_is_open(h);

    set_phase(h, DT_HOST_CLOSED);
    h->closing_aside += open && h->aside;
    if (open)
        h->shared->ops->close(h->shared->ops->arg, h->host);
}

void dt_hostlink_close(struct dt_hostlink *h, const char *fmt, ...)
{
    va_list ap;

    if (h->phase == DT_HOST_CLOSED)
        return;
    va_start(ap, fmt);
    dt_error_vset(&h->why, fmt, ap);
    va_end(ap);
    h->closing = true;
    dt_hostlink_put_off(h);
}

const char *dt_hostlink_why(const struct dt_hostlink *h)
{
    return h->why.text[0] ? h->why.text : "agent: it ended unexpectedly";
}

bool dt_hostlink_same_loss(const struct dt_hostlink *a, const struct dt_hostlink *b)
{
    return a->closing == b->closing && a->injected == b->injected &&
           strcmp(a->why.text, b->why.text) == 0;
}

void dt_hostlink_describe_loss(const struct dt_hostlink *h, const char *name, struct dt_strbuf *out)
{
    dt_strbuf_printf(out, "%s%s %s%s", name, h->closing ? "" : ":", dt_hostlink_why(h),
                     h->injected ? " (--inject)" : "");
}

void dt_hostlink_free(struct dt_hostlink *h)
{
    if (!h)
        return;
    free(h->identity);
    free(h->addr);
    free(h->peer_addr);
    dt_netaddrs_free(&h->netaddrs);
    free(h->dir);
    free(h);
}
