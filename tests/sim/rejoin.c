/* Hosts that come back while ranks run. dtrun tries them when it is time, in a connection for which
 * nothing waits, and uses them at the next restart (launcher/job/rejoin.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/error.h"
#include "tests/sim/world.h"

enum {
    LONGEST_S = 3600,
    LATE_MS = 150,
    DECISION_S = 11, /* in which dtrun learns that nothing has failed after all */
};

/* All ranks run, and nothing is about to end them. */
static bool is_calm(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return x->generation > 0 && x->running == x->nodes && !x->ncauses && !x->decided &&
           !x->norders && !x->cut_off && !x->finished && !w->ended;
}

bool sim_is_connected(const struct sim_host *h)
{
    return h->conn && h->conn->open && (!h->conn->aside || h->conn->pushed);
}

/* ---- when it is tried ---- */

static uint64_t wait_ns(const struct sim_world *w, uint32_t waits)
{
    uint64_t s = w->s->rejoin_s, longest_s = s > LONGEST_S ? s : LONGEST_S;

    for (uint32_t i = 1; i < waits && s < longest_s; i++)
        s *= 2;
    return (s < longest_s ? s : longest_s) * SIM_S;
}

static bool is_fanout_used(const struct sim_world *w)
{
    uint32_t connecting = 0;

    for (const struct sim_conn *c = w->conns; c; c = c->next)
        connecting += c->open && !c->greeted;
    return connecting >= (uint32_t)w->s->fanout;
}

/* Whether the job needs none of this host's slots, so that dtrun may not have tried it again. */
static bool is_spare(const struct sim_world *w, const struct sim_host *h)
{
    uint32_t slots = 0;

    for (uint32_t i = 0; i < h->index; i++) {
        if (w->hosts[i].generation == w->witness.generation)
            slots += (uint32_t)w->s->slots[i % SIM_HOSTS_MAX];
    }
    return slots >= w->s->np;
}

/* Since when dtrun can have waited for this host, at the latest. It does not while it asks agents
 * whether anything has failed. */
static uint64_t waits_since(const struct sim_world *w, const struct sim_host *h)
{
    const struct sim_witness *x = &w->witness;
    uint64_t ns = w->standing_until > x->all_run_ns ? w->standing_until : x->all_run_ns;

    for (const struct sim_conn *c = w->conns; c; c = c->next) {
        uint64_t decided_ns = c->queried_ns + DECISION_S * SIM_S + wait_ns(w, h->waits);

        if (c->queried_ns > h->conn->opened_ns && decided_ns > ns)
            ns = decided_ns;
    }
    return ns;
}

static void expect_try(struct sim_world *w, struct sim_event *e)
{
    const struct sim_host *h = &w->hosts[e->n];
    uint64_t since_ns;

    if (!is_calm(w) || !h->waiting || h->conn->opened != e->epoch || is_fanout_used(w) ||
        is_spare(w, h))
        return;
    since_ns = waits_since(w, h);
    if (w->now_ns < since_ns + LATE_MS * SIM_MS)
        sim_later(w, since_ns + LATE_MS * SIM_MS - w->now_ns, *e);
    else
        sim_broken(w, "%s is lost, and not tried again", h->name);
}

static void watch(struct sim_world *w, struct sim_host *h)
{
    bool lost = h->conn && !h->conn->open && !h->taken && (h->lost || h->left);

    if (!lost || h->waiting) {
        h->waiting &= lost;
        return;
    }
    h->waiting = true;
    h->waits += !h->put_off;
    sim_later(w, (h->put_off ? 0 : wait_ns(w, h->waits)) + LATE_MS * SIM_MS,
              (struct sim_event){
                  .act = expect_try, .n = h->index, .epoch = h->conn->opened, .for_engine = true });
}

void sim_rejoin_watch(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts && w->s->rejoin_s && is_calm(w); i++)
        watch(w, &w->hosts[i]);
}

bool sim_check_opened_aside(struct sim_world *w, struct sim_host *h)
{
    const struct sim_witness *x = &w->witness;
    uint32_t waits = h->waiting ? h->waits : h->waits + 1;

    if (!x->generation || x->decided || x->cut_off || x->finished) {
        h->waiting = h->put_off = false;
        return false;
    }
    if (!w->s->rejoin_s || x->running != x->nodes || x->norders)
        sim_broken(w, "%s is tried again, and must not be now", h->name);
    else if (!h->conn || h->taken)
        sim_broken(w, "%s is tried again, and cannot come back", h->name);
    else if (!h->put_off && w->now_ns < h->conn->ended_ns + wait_ns(w, waits))
        sim_broken(w, "%s is tried again after %" PRIu64 " ms", h->name,
                   (w->now_ns - h->conn->ended_ns) / SIM_MS);
    h->waits = h->put_off ? h->waits : waits;
    h->waiting = h->put_off = false;
    h->lost = true;
    return true;
}

/* ---- when it is back ---- */

bool sim_is_same_machine(const struct sim_world *w, const struct sim_conn *c)
{
    for (uint32_t i = 0; i < w->s->hosts && w->s->twin; i++) {
        const struct sim_host *other = &w->hosts[i];

        if (other != c->host && other->conn && other->conn->open && other->conn->greeted &&
            strcmp(other->identity, c->host->identity) == 0)
            return true;
    }
    return false;
}

void sim_rejoin_ready(struct sim_world *w, struct sim_conn *c)
{
    struct sim_host *h = c->host;

    (void)w;
    if (!c->aside)
        return;
    h->back = true;
    h->lost = h->left = h->second = false;
}

void sim_rejoin_ended(struct sim_world *w, struct sim_conn *c)
{
    const struct sim_witness *x = &w->witness;

    c->ended_ns = w->now_ns;
    if (!c->aside)
        return;
    if (c->started)
        return;
    c->host->lost = true;
    c->host->back = false;
    c->host->put_off = !c->pushed && c->given_up && !c->same && (x->decided || x->norders);
}

void sim_check_back_said(struct sim_world *w, const char *line)
{
    const char *left_out = strstr(line, " is back, but left out for ");
    unsigned i = 0;
    struct sim_host *h;

    if (!left_out && !strstr(line, " is back, and the next restart may use it"))
        return;
    h = sscanf(line, "dtrun: h%u ", &i) == 1 && i < w->s->hosts ? &w->hosts[i] : NULL;
    if (!h || !h->back) {
        sim_broken(w, "dtrun says that a host is back, and it is not: %s", line);
        return;
    }
    h->out = left_out != NULL; /* what dtrun does not say of hosts that are lost */
    h->exiles += h->out;
    if (left_out) {
        unsigned long long seconds = 0;

        sscanf(left_out, " is back, but left out for %llu s", &seconds);
        h->out_until_ns = w->now_ns + (seconds - 1) * SIM_S;
    }
}

void sim_expect_away_said(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];

        h->away = h->conn && !sim_is_connected(h) && !h->taken && (h->lost || h->left || h->second);
    }
}

/* A line names hosts that are away for the same reason: "dtrun: not back: h1, h2: ...". */
void sim_check_away_said(struct sim_world *w, const char *line)
{
    const char *name = strstr(line, "not back: ");
    unsigned i;

    for (name = name ? name + 10 : NULL; name; name = name ? name + 2 : NULL) {
        if (sscanf(name, "h%u", &i) != 1 || i >= w->s->hosts || !w->hosts[i].away) {
            sim_broken(w, "dtrun says that a host is not back, and it is: %s", line);
            return;
        }
        w->hosts[i].away = false;
        name += strspn(name, "h0123456789");
        name = strncmp(name, ", ", 2) == 0 ? name : NULL;
    }
}

/* ---- when ranks start ---- */

void sim_rejoin_started(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];

        if (h->away)
            sim_broken(w, "%s is lost, and dtrun does not say why", h->name);
        h->due = h->back && sim_is_connected(h) && !h->out && !h->left;
    }
}

/* A host that is back gets ranks before hosts that come after it. */
void sim_check_back_used(struct sim_world *w)
{
    uint32_t slots = 0;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        struct sim_host *h = &w->hosts[i];
        bool used = h->generation == w->witness.generation;

        if (h->due && !used && slots < w->s->np)
            sim_broken(w, "%s is back, and gets no ranks", h->name);
        slots += used ? (uint32_t)w->s->slots[i % SIM_HOSTS_MAX] : 0;
        h->due = false;
    }
}

void sim_rejoin_runs(struct sim_world *w, struct sim_conn *c)
{
    struct sim_witness *x = &w->witness;

    c->aside = c->host->back = false;
    if (x->running != x->nodes)
        return;
    x->all_run_ns = w->now_ns;
    x->outage = false;
}

/* ---- when it is late ---- */

/* Ranks there may not be ready, or its agent may still be trying to reach others. */
static bool may_be_late(const struct sim_world *w, const struct sim_host *h)
{
    return sim_is_connected(h) && h->conn->aside && h->generation == w->witness.generation;
}

bool sim_rejoin_is_late(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    x->orders_before = x->norders;
    x->late_in = x->generation;
    for (uint32_t i = 0; i < w->s->hosts && x->generation && x->went != x->generation; i++)
        x->late |= may_be_late(w, &w->hosts[i]);
    return x->late;
}

void sim_check_late_said(struct sim_world *w, const char *line)
{
    struct sim_witness *x = &w->witness;
    unsigned i = 0;

    if (!x->late)
        return;
    if (strstr(line, " hosts are not ready after "))
        sim_oracle_order(w, (struct sim_order){ .code = DT_EXIT_LAUNCH });
    if (!strstr(line, " in time after it came back; leaving this host"))
        return;
    if (sscanf(line, "dtrun: h%u: ", &i) != 1 || i >= w->s->hosts ||
        !may_be_late(w, &w->hosts[i])) {
        sim_broken(w, "dtrun leaves a host that is not late: %s", line);
        return;
    }
    if (!x->cut_off)
        sim_recovery_put_off(w);
    w->hosts[i].left = x->cut_off = true;
}

void sim_check_late_handled(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;
    bool ends = x->norders > x->orders_before;

    for (uint32_t i = 0; i < w->s->hosts && x->late; i++) {
        const struct sim_host *h = &w->hosts[i];

        if (ends && may_be_late(w, h) && !h->conn->ready && !x->ncauses && !w->s->stop_on_loss &&
            sim_is_room_elsewhere(w, h))
            sim_broken(w, "%s is back and late, and the job ends", h->name);
    }
    if (x->late && !x->norders && !x->cut_off && !x->ncauses && x->late_in == x->generation)
        sim_broken(w, "hosts are late, and the job neither ends nor leaves them");
    x->late = false;
}

/* ---- nothing waits for it ---- */

/* Whether dtrun has to wait for a connection that is not aside. */
static bool is_any_opening_or_closing(const struct sim_world *w)
{
    for (const struct sim_conn *c = w->conns; c; c = c->next) {
        if (!c->aside && ((c->open && !c->pushed) || (c->given_up && !c->hung_up)))
            return true;
    }
    return false;
}

static bool has_any_ranks(const struct sim_world *w)
{
    for (const struct sim_conn *c = w->conns; c; c = c->next) {
        if (c->open && c->started)
            return true;
    }
    return false;
}

/* Whether all hosts that had ranks are connected, and none may have any left. */
static bool are_hosts_ready(const struct sim_world *w)
{
    uint64_t lease_ns = (uint64_t)w->s->heartbeat_s * SIM_S + SIM_S;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *h = &w->hosts[i];
        bool needed = h->generation == w->witness.generation;

        if (h->orphans_ns && w->now_ns < h->orphans_ns + lease_ns)
            return false;
        if (needed && (!sim_is_connected(h) || h->left || h->second))
            return false;
    }
    return true;
}

/* dtrun has learnt that a host's ranks have ended, with all that belongs to them. */
void sim_check_not_awaited(struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    if (has_any_ranks(w) || is_any_opening_or_closing(w) || x->norders || x->finished ||
        sim_is_about_to_end(w))
        return;
    if (x->ended_well == w->s->np && !x->ncauses && !x->decided)
        sim_broken(w, "all ranks have ended, and the job does not end");
    if (x->restarting && are_hosts_ready(w) && w->now_ns >= sim_restarts_due_ns(w))
        sim_broken(w, "all hosts are ready, and ranks do not start again");
}
