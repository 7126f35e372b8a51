#include "launcher/job/rejoin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"

static const char *name_of(const struct dt_rejoin *r, size_t host)
{
    return dt_core_host_name(r->core, host);
}

/* Returns when the host is tried next, or UINT64_MAX. */
static uint64_t watch_host(struct dt_rejoin *r, size_t i)
{
    struct dt_rejoin_host *h = &r->hosts[i];
    const struct dt_hostlink *link = r->core->links.v[i];

    if (!dt_rehost_may_come_back(r->rehost, i)) {
        dt_comeback_end(&h->comeback);
        return UINT64_MAX;
    }
    if (h->opened_ns != link->opened_ns) /* a recovery has tried it, too */
        dt_comeback_end(&h->comeback);
    h->opened_ns = link->opened_ns;
    dt_comeback_wait(&h->comeback, (uint64_t)r->core->config->rejoin_s, dt_core_now(r->core));
    return h->comeback.due_ns;
}

void dt_rejoin_watch(struct dt_rejoin *r)
{
    uint64_t next_ns = UINT64_MAX, now_ns = dt_core_now(r->core);

    if (r->core->state != DT_JOB_RUNNING || !r->core->config->rejoin_s)
        return;
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        uint64_t due_ns = watch_host(r, i);

        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    if (next_ns != UINT64_MAX)
        dt_timers_set(&r->core->timers, DT_TIMER_REJOIN,
                      next_ns > now_ns ? (next_ns - now_ns + 999999) / 1000000 : 0);
}

void dt_rejoin_try(struct dt_rejoin *r)
{
    if (r->core->state != DT_JOB_RUNNING)
        return;
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        struct dt_comeback *c = &r->hosts[i].comeback;

        if (!c->due_ns || c->due_ns > dt_core_now(r->core))
            continue;
        dt_comeback_end(c);
        dt_verbose("%s: checking whether it is back", name_of(r, i));
        dt_hostlinks_open_aside(&r->core->links, i);
    }
    dt_rejoin_watch(r);
}

/* Returns the host that the job already reaches by another name, or NULL. */
static const struct dt_hostlink *find_same_machine(const struct dt_rejoin *r,
                                                   const struct dt_hostlink *h)
{
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        const struct dt_hostlink *other = r->core->links.v[i];

        if (other && other != h && other->identity && dt_hostlink_is_open(other) &&
            strcmp(other->identity, h->identity) == 0)
            return other;
    }
    return NULL;
}

bool dt_rejoin_accept(struct dt_rejoin *r, struct dt_hostlink *h)
{
    const struct dt_hostlink *same = h->aside ? find_same_machine(r, h) : NULL;

    if (same)
        dt_hostlink_close(h, "is the same machine as %s", name_of(r, same->host));
    else if (h->aside && !dt_network_has_address(r->network, h))
        dt_hostlink_close(h, "has no address for the other hosts");
    if (h->phase != DT_HOST_CLOSED)
        return true;
    dt_verbose("%s %s, so it is not used", name_of(r, h->host), h->why.text);
    dt_rejoin_watch(r);
    return false;
}

static void say_back(const struct dt_rejoin *r, size_t host)
{
    uint64_t left_s = dt_rehost_left_out_s(r->rehost, host);

    if (left_s)
        dt_say("%s is back, but left out for %" PRIu64 " s more at least, since failures begin "
               "there",
               name_of(r, host), left_s);
    else
        dt_say("%s is back, and the next restart may use it", name_of(r, host));
}

/* A host that comes and goes is told of once. */
void dt_rejoin_ready(struct dt_rejoin *r, const struct dt_hostlink *h)
{
    struct dt_rejoin_host *host = &r->hosts[h->host];
    enum dt_rejoin_told news;

    if (!h->aside)
        return;
    dt_rehost_take_back(r->rehost, h->host);
    news = dt_rehost_left_out_s(r->rehost, h->host) ? DT_REJOIN_LEFT_OUT : DT_REJOIN_BACK;
    if (host->told != news)
        say_back(r, h->host);
    else
        dt_verbose("%s is back again", name_of(r, h->host));
    host->told = news;
}

/* If ranks were on the host, it is lost like any other, or connected to again. */
void dt_rejoin_on_ended(struct dt_rejoin *r, const struct dt_hostlink *h, enum dt_host_phase was)
{
    bool idle = was == DT_HOST_IDLE;

    if (h->aside && was != DT_HOST_STARTING && was != DT_HOST_RUNNING) {
        dt_verbose("%s is %s: %s", name_of(r, h->host), idle ? "lost again" : "not back",
                   dt_hostlink_why(h));
        dt_rehost_lose(r->rehost, h->host);
    }
    dt_rejoin_watch(r);
}

bool dt_rejoin_leave_late(struct dt_rejoin *r)
{
    bool left = false;

    for (size_t i = 0; i < r->core->plan.nnodes && r->core->state == DT_JOB_STARTING; i++) {
        struct dt_hostlink *h = r->core->links.v[r->core->plan.nodes[i].host];
        const char *awaited = dt_hostlink_awaits(h);

        if (!h->aside || !awaited || !dt_rehost_spare(r->rehost, h->host))
            continue;
        dt_say("%s: %s: not done in time after it came back; leaving this host",
               name_of(r, h->host), awaited);
        dt_hostlink_close(h, "was not ready in time");
        h->told = true;
        left = true;
    }
    if (left)
        dt_rehost_begin_anew(r->rehost);
    return left;
}

void dt_rejoin_put_off(struct dt_rejoin *r)
{
    dt_timers_stop(&r->core->timers, DT_TIMER_REJOIN);
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        struct dt_hostlink *h = r->core->links.v[i];
        struct dt_rejoin_host *host = &r->hosts[i];

        host->told = DT_REJOIN_NOTHING;
        if (!h || !h->aside || !dt_hostlink_is_opening(h))
            continue;
        dt_hostlink_put_off(h);
        dt_comeback_put_off(&host->comeback, dt_core_now(r->core));
        host->opened_ns = h->opened_ns;
    }
}

void dt_rejoin_init(struct dt_rejoin *r, struct dt_core *core, struct dt_rehost *rehost,
                    const struct dt_network *network)
{
    *r = (struct dt_rejoin){
        .core = core,
        .rehost = rehost,
        .network = network,
        .hosts = dt_xcalloc(core->config->hosts->n, sizeof(struct dt_rejoin_host)),
    };
}

void dt_rejoin_free(struct dt_rejoin *r)
{
    free(r->hosts);
}
