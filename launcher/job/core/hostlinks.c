#include "launcher/job/core/hostlinks.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

void dt_hostlinks_init(struct dt_hostlinks *l, const struct dt_hostlist *hosts, int fanout,
                       const struct dt_job_ops *ops)
{
    *l = (struct dt_hostlinks){
        .shared = { .ops = ops },
        .hosts = hosts,
        .fanout = fanout,
        .v = dt_xcalloc(hosts->n, sizeof(struct dt_hostlink *)),
    };
}

void dt_hostlinks_free(struct dt_hostlinks *l)
{
    for (size_t i = 0; i < l->hosts->n; i++)
        dt_hostlink_free(l->v[i]);
    free(l->v);
}

void dt_hostlinks_connect_next(struct dt_hostlinks *l)
{
    for (size_t i = 0; i < l->hosts->n && l->shared.connecting < l->fanout; i++) {
        if (!l->v[i] || l->v[i]->phase != DT_HOST_WAITING)
            continue;
        l->open++;
        dt_hostlink_connect(l->v[i]);
    }
}

static void open_link(struct dt_hostlinks *l, size_t host, bool aside)
{
    struct dt_hostlink *before = l->v[host];

    l->v[host] = dt_hostlink_new(&l->shared, host, before);
    l->v[host]->aside = aside;
    dt_hostlink_free(before);
    dt_hostlinks_connect_next(l);
}

void dt_hostlinks_open(struct dt_hostlinks *l, size_t host)
{
    open_link(l, host, false);
}

void dt_hostlinks_open_aside(struct dt_hostlinks *l, size_t host)
{
    open_link(l, host, true);
}

void dt_hostlinks_on_ended(struct dt_hostlinks *l)
{
    l->open--;
    dt_hostlinks_connect_next(l);
}

/* If several connections to the host are ending, one that is aside counts as the first to have
 * ended: then whoever waits for the others waits long enough. */
void dt_hostlinks_on_hung_up(struct dt_hostlinks *l, size_t host)
{
    l->v[host]->closing_aside -= l->v[host]->closing_aside > 0;
    dt_hostlinks_on_ended(l);
}

void dt_hostlinks_send_all(const struct dt_hostlinks *l, uint8_t type, const void *msg)
{
    struct dt_put frames = { 0 };

    dt_msg_frame(&frames, type, msg); /* once for all hosts: tables of ranks are large */
    for (size_t i = 0; i < l->hosts->n; i++) {
        if (dt_hostlink_has_ranks(l->v[i]))
            dt_hostlink_send_frames(l->v[i], type, &frames);
    }
    dt_put_free(&frames);
}

void dt_hostlinks_end_all(const struct dt_hostlinks *l)
{
    struct dt_msg_end end = { 0 };

    for (size_t i = 0; i < l->hosts->n; i++) {
        if (l->v[i])
            dt_hostlink_send(l->v[i], DT_MSG_END, &end);
    }
}

/* A connection that is still being opened may take long, and its host has no ranks to stop. */
void dt_hostlinks_close_opening(const struct dt_hostlinks *l)
{
    for (size_t i = 0; i < l->hosts->n; i++) {
        if (l->v[i] && dt_hostlink_is_opening(l->v[i]))
            dt_hostlink_put_off(l->v[i]);
    }
}

void dt_hostlinks_close_all(const struct dt_hostlinks *l)
{
    for (size_t i = 0; i < l->hosts->n; i++) {
        if (l->v[i])
            dt_hostlink_close(l->v[i], "did not end in time");
    }
}

bool dt_hostlinks_are_idle(const struct dt_hostlinks *l)
{
    for (size_t i = 0; i < l->hosts->n; i++) {
        const struct dt_hostlink *h = l->v[i];

        if (h && ((dt_hostlink_is_opening(h) && !h->aside) || dt_hostlink_has_ranks(h)))
            return false;
    }
    return true;
}

bool dt_hostlinks_any_closing(const struct dt_hostlinks *l)
{
    unsigned others = 0;

    for (size_t i = 0; i < l->hosts->n; i++) {
        if (l->v[i])
            others += dt_hostlink_is_open(l->v[i]) + l->v[i]->closing_aside;
    }
    return others < l->open;
}

void dt_hostlinks_query(struct dt_hostlinks *l)
{
    struct dt_msg_query query = { ++l->query };

    for (size_t i = 0; i < l->hosts->n; i++) {
        if (l->v[i])
            l->v[i]->answered = false;
    }
    dt_hostlinks_send_all(l, DT_MSG_QUERY, &query);
}

bool dt_hostlinks_answer(const struct dt_hostlinks *l, struct dt_hostlink *h, uint32_t query)
{
    bool newest = query == l->query;

    h->answered |= newest;
    return newest;
}

bool dt_hostlinks_have_answered(const struct dt_hostlinks *l)
{
    for (size_t i = 0; i < l->hosts->n; i++) {
        if (dt_hostlink_has_ranks(l->v[i]) && !l->v[i]->answered)
            return false;
    }
    return true;
}

bool dt_hostlinks_await_signals(const struct dt_hostlinks *l, uint64_t signals)
{
    for (size_t i = 0; i < l->hosts->n; i++) {
        const struct dt_hostlink *h = l->v[i];

        if (h && dt_hostlink_has_ranks(h) && h->in_step && (signals & ~h->signalled))
            return true;
    }
    return false;
}

void dt_hostlinks_end_gathering(const struct dt_hostlinks *l, uint64_t reported, uint64_t now_ns)
{
    for (size_t i = 0; i < l->hosts->n; i++) {
        if (l->v[i])
            dt_hostlink_end_gathering(l->v[i], reported, now_ns);
    }
}
