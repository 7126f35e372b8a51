#include "launcher/job/rehost.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/watch/words.h"

/* For how long, and how often, dtrun connects again to lost hosts without which the job cannot
 * continue. */
enum { OUTAGE_S = 10 * 60, OUTAGE_PAUSE_S = 10 };

/* Lists the hosts that can be used, and on request those in quarantine as well. index[i] is the
 * place of the i-th one in the job's list. */
static void list_usable(const struct dt_rehost *r, bool with_quarantined, struct dt_hostlist *list,
                        size_t *index)
{
    const struct dt_hostlist *all = r->core->config->hosts;

    list->v = dt_xcalloc(all->n, sizeof *list->v);
    for (size_t i = 0; i < all->n; i++) {
        if (r->lost[i] || (r->quarantine.hosts[i].out && !with_quarantined))
            continue;
        index[list->n] = i;
        list->v[list->n++] = all->v[i];
    }
}

static int plan_on_usable(const struct dt_rehost *r, bool with_quarantined, struct dt_plan *plan,
                          struct dt_error *err)
{
    size_t *index = dt_xcalloc(r->core->config->hosts->n, sizeof *index);
    struct dt_hostlist list = { 0 };
    const struct dt_placement how = { .map_by = r->core->config->map_by,
                                      .no_oversubscribe = r->core->config->no_oversubscribe,
                                      .servers = dt_plan_servers(&r->core->plan) };
    int rc;

    list_usable(r, with_quarantined, &list, index);
    rc = list.n ? dt_plan_make(plan, &list, (int)r->core->ranks.np, &how, err)
                : dt_error_set(err, "no host is left");
    for (size_t i = 0; rc == 0 && i < plan->nnodes; i++)
        plan->nodes[i].host = index[plan->nodes[i].host];
    free(list.v); /* its entries belong to the job's list */
    free(index);
    return rc;
}

static int place_on_usable(struct dt_rehost *r, struct dt_error *err)
{
    struct dt_plan plan = { 0 };

    if (plan_on_usable(r, false, &plan, err) < 0)
        return -1;
    dt_plan_free(&r->core->plan);
    r->core->plan = plan;
    return 0;
}

/* Whether the job fits on the hosts that are not lost. */
static bool fits_with_quarantined(const struct dt_rehost *r, struct dt_error *err)
{
    struct dt_plan plan = { 0 };
    bool fits = plan_on_usable(r, true, &plan, err) == 0;

    dt_plan_free(&plan);
    return fits;
}

/* Rather than give up, the job uses hosts that are in quarantine. */
static int place_anew(struct dt_rehost *r, struct dt_error *err)
{
    if (place_on_usable(r, err) == 0)
        return 0;
    if (!fits_with_quarantined(r, err))
        return -1;
    r->changed |= dt_quarantine_end_all(&r->quarantine);
    return place_on_usable(r, err);
}

static void say_moved(const struct dt_rehost *r, const char *how)
{
    struct dt_strbuf b = { 0 };

    dt_words_count(&b, r->core->ranks.np, "rank");
    dt_strbuf_puts(&b, " on the ");
    dt_words_count(&b, (uint64_t)r->core->plan.slots, "slot");
    dt_strbuf_puts(&b, " of ");
    dt_words_count(&b, r->core->plan.nnodes, "host");
    dt_say("continuing %s: %s%s", how, dt_strbuf_text(&b),
           r->core->plan.oversubscribed ? ", devices are shared" : "");
    dt_strbuf_free(&b);
}

static void add_names(struct dt_strbuf *names, const char *more)
{
    dt_strbuf_printf(names, "%s%s", names->len ? ", " : "", more);
}

static void add_name(const struct dt_rehost *r, struct dt_strbuf *names, size_t host)
{
    add_names(names, dt_core_host_name(r->core, host));
}

static void drop(struct dt_rehost *r, size_t host, struct dt_strbuf *names)
{
    if (!r->moved[host])
        r->moved[host] = DT_REHOST_MOVED;
    add_name(r, names, host);
}

/* The user has just been told which hosts the job has moved from. */
static void note_told(struct dt_rehost *r)
{
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        if (r->moved[i])
            r->moved[i] = DT_REHOST_TOLD;
    }
}

/* Marks the plan's hosts that did not come back as lost, and names these and those that were given
 * up before. */
static void drop_missing(struct dt_rehost *r, struct dt_strbuf *names)
{
    for (size_t i = 0; i < r->core->plan.nnodes; i++) {
        size_t host = r->core->plan.nodes[i].host;
        const struct dt_hostlink *h = r->core->links.v[host];

        if (h->phase != DT_HOST_CLOSED && !r->lost[host])
            continue;
        r->lost[host] = true;
        drop(r, host, names);
    }
}

/* A host that had no ranks so far may prove to be the same machine as one that has. Then the job
 * cannot use it. It is the later of the two, because a plan takes hosts in order. */
static void drop_duplicate_host(struct dt_rehost *r, struct dt_strbuf *names)
{
    size_t one, other;

    if (!dt_core_find_duplicate_hosts(r->core, &one, &other) || r->lost[one] || r->lost[other])
        return;
    dt_say("%s and %s are one machine", dt_core_host_name(r->core, one),
           dt_core_host_name(r->core, other));
    r->lost[other] = true;
    drop(r, other, names);
}

/* Returns the names of the plan's hosts that the job cannot use, or NULL if it can use all. */
static char *drop_unusable(struct dt_rehost *r)
{
    struct dt_strbuf names = { 0 };

    drop_missing(r, &names);
    drop_duplicate_host(r, &names);
    return names.len ? dt_strbuf_take(&names) : NULL;
}

static void forget_retries(struct dt_rehost *r)
{
    memset(r->retried, 0, r->core->config->hosts->n * sizeof *r->retried);
}

/* Connects to the plan's hosts that are not connected, unless that was tried in this recovery.
 * Returns whether there are any. */
static bool open_new(struct dt_rehost *r)
{
    bool opened = false;

    for (size_t i = 0; i < r->core->plan.nnodes; i++) {
        size_t host = r->core->plan.nodes[i].host;

        if (r->core->links.v[host] &&
            (r->core->links.v[host]->phase != DT_HOST_CLOSED || r->retried[host]))
            continue;
        r->retried[host] = true;
        dt_hostlinks_open(&r->core->links, host);
        opened = true;
    }
    return opened;
}

bool dt_rehost_may_come_back(const struct dt_rehost *r, size_t host)
{
    const struct dt_hostlink *h = r->core->links.v[host];

    return r->lost[host] && h && h->phase == DT_HOST_CLOSED && !h->injected;
}

static void use_all_again(struct dt_rehost *r)
{
    for (size_t i = 0; i < r->core->config->hosts->n; i++)
        r->lost[i] &= !dt_rehost_may_come_back(r, i);
}

/* Whether the job can continue if all hosts come back that may. */
static bool can_continue_with_all(struct dt_rehost *r)
{
    size_t n = r->core->config->hosts->n;
    bool *lost = dt_xcalloc(n, sizeof *lost), fits;
    struct dt_error err = { 0 };

    memcpy(lost, r->lost, n * sizeof *lost);
    use_all_again(r);
    fits = fits_with_quarantined(r, &err);
    free(r->lost);
    r->lost = lost;
    return fits;
}

static void add_reason(const struct dt_hostlink *h, struct dt_strbuf *names,
                       struct dt_strs *reasons)
{
    struct dt_strbuf text = { 0 };

    dt_hostlink_describe_loss(h, dt_strbuf_text(names), &text);
    dt_xstrs_add(reasons, text.data);
    dt_strbuf_free(&text);
    dt_strbuf_free(names);
}

/* Adds "host1, host2: reason" for each reason why some of the hosts cannot be reached. */
static void group_reasons(const struct dt_rehost *r, const bool *hosts, struct dt_strs *reasons)
{
    const struct dt_hostlink *last = NULL;
    struct dt_strbuf names = { 0 };

    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        const struct dt_hostlink *h = r->core->links.v[i];

        if (!hosts[i])
            continue;
        if (last && !dt_hostlink_same_loss(h, last))
            add_reason(last, &names, reasons);
        add_name(r, &names, i);
        last = h;
    }
    if (last)
        add_reason(last, &names, reasons);
}

/* Lists why the plan's hosts cannot be reached, unless the user knows. */
static void list_reasons(const struct dt_rehost *r, struct dt_strs *reasons)
{
    bool *hosts = dt_xcalloc(r->core->config->hosts->n, sizeof *hosts);

    for (size_t i = 0; i < r->core->plan.nnodes; i++) {
        size_t host = r->core->plan.nodes[i].host;
        const struct dt_hostlink *h = r->core->links.v[host];

        hosts[host] = h->phase == DT_HOST_CLOSED && h->why.text[0] && !h->told && !h->injected;
    }
    group_reasons(r, hosts, reasons);
    free(hosts);
}

static void say_reasons(const struct dt_strs *reasons, bool always)
{
    for (uint32_t i = 0; i < reasons->n; i++)
        (always ? dt_say : dt_verbose)("%s", reasons->v[i]);
}

bool dt_rehost_is_away(const struct dt_rehost *r, size_t host)
{
    const struct dt_hostlink *h = r->core->links.v[host];

    return r->lost[host] && h && !h->injected &&
           (h->phase == DT_HOST_CLOSED || dt_hostlink_is_opening(h));
}

void dt_rehost_say_away(const struct dt_rehost *r)
{
    size_t n = r->core->config->hosts->n;
    bool *hosts = dt_xcalloc(n, sizeof *hosts);
    struct dt_strs reasons = { 0 };

    for (size_t i = 0; i < n; i++)
        hosts[i] = dt_rehost_is_away(r, i);
    group_reasons(r, hosts, &reasons);
    for (uint32_t i = 0; i < reasons.n; i++)
        dt_say("not back: %s", reasons.v[i]);
    dt_strs_free(&reasons);
    free(hosts);
}

/* Returns false if the job has to end. */
static bool await_hosts(struct dt_rehost *r, const char *lost, const char *why,
                        const struct dt_strs *reasons)
{
    uint64_t until_ns = r->began_ns + OUTAGE_S * UINT64_C(1000000000);

    if (dt_core_now(r->core) >= until_ns || !can_continue_with_all(r))
        return false;
    say_reasons(reasons, !r->outage);
    if (!r->outage) {
        dt_say("%s cannot be used now, and %s; trying again for %d minutes", lost, why,
               OUTAGE_S / 60);
        note_told(r);
    }
    r->outage = true;
    dt_timers_set(&r->core->timers, DT_TIMER_OUTAGE, OUTAGE_PAUSE_S * 1000);
    return true;
}

void dt_rehost_try_again(struct dt_rehost *r)
{
    struct dt_error err = { 0 };

    use_all_again(r);
    forget_retries(r);
    dt_strbuf_free(&r->without);
    if (place_anew(r, &err) == 0)
        open_new(r);
    else
        dt_verbose("%s", err.text); /* a host has shut down meanwhile */
    dt_core_check_idle(r->core);
}

static void give_up(struct dt_rehost *r, const char *lost, const char *why,
                    const struct dt_strs *reasons)
{
    say_reasons(reasons, true);
    dt_say("giving up: %s cannot be used any more, and %s", lost, why);
    dt_core_end(r->core, DT_EV_FAILED, DT_EXIT_LAUNCH, dt_xasprintf("%s lost: %s", lost, why));
}

static void say_moved_from(struct dt_rehost *r, const char *lost)
{
    char *how = dt_xasprintf("without %s", lost);

    say_moved(r, how);
    note_told(r);
    free(how);
}

/* In an outage the hosts that are left may be missing, too. Then the job does not continue yet. */
static void tell_moved_from(struct dt_rehost *r, const char *lost, const struct dt_strs *reasons)
{
    say_reasons(reasons, !r->outage);
    if (r->outage)
        add_names(&r->without, lost);
    else
        say_moved_from(r, lost);
}

static void tell_outage_over(struct dt_rehost *r)
{
    if (r->without.len)
        say_moved_from(r, r->without.data);
    dt_strbuf_free(&r->without);
}

/* Returns false when the job has to wait or to end. */
static bool move_from_lost(struct dt_rehost *r, const char *lost)
{
    bool stop = r->core->config->on_host_loss == DT_HOST_LOSS_STOP;
    struct dt_error err = { 0 };
    struct dt_strs reasons = { 0 };
    bool moved;

    if (stop)
        dt_error_set(&err, "--on-host-loss stop was given");
    list_reasons(r, &reasons);
    moved = !stop && place_anew(r, &err) == 0;
    if (moved)
        tell_moved_from(r, lost, &reasons);
    else if (stop || !await_hosts(r, lost, err.text, &reasons))
        give_up(r, lost, err.text, &reasons);
    dt_strs_free(&reasons);
    return moved;
}

/* Returns what follows "continuing", or NULL if nothing has changed for this host. The caller frees
 * it. */
static char *describe_news(const struct dt_rehost *r, size_t host)
{
    const struct dt_quarantine_host *q = &r->quarantine.hosts[host];
    const char *name = dt_core_host_name(r->core, host);

    switch (q->news) {
    case DT_QUARANTINE_OUT:
        return dt_xasprintf("without %s for %" PRIu64 " s at least, since failures begin there "
                            "(%u in a row without progress)",
                            name, dt_quarantine_seconds(q), r->quarantine.failures);
    case DT_QUARANTINE_BACK:
        return dt_xasprintf("with %s again", name);
    case DT_QUARANTINE_CLEARED:
        return dt_xasprintf("with %s again, since rank %u fails elsewhere, too", name,
                            r->quarantine.rank);
    default:
        return NULL;
    }
}

static void tell_news(struct dt_rehost *r, size_t host)
{
    char *how = describe_news(r, host);

    r->quarantine.hosts[host].news = DT_QUARANTINE_NOTHING;
    dt_history_note_host(r->history, host, r->quarantine.hosts[host].out, r->core->generation + 1);
    if (how)
        say_moved(r, how);
    if (how && !r->quarantine.hosts[host].out)
        r->moved[host] = DT_REHOST_USED;
    free(how);
}

/* Names the hosts that get ranks because they are back, except those of which tell_news tells. */
static void tell_back(struct dt_rehost *r)
{
    struct dt_strbuf names = { 0 };
    char *how;

    for (size_t i = 0; i < r->core->plan.nnodes; i++) {
        size_t host = r->core->plan.nodes[i].host;
        const struct dt_hostlink *h = r->core->links.v[host];

        if (!r->moved[host] || !h || h->phase != DT_HOST_IDLE)
            continue;
        if (r->moved[host] == DT_REHOST_TOLD &&
            r->quarantine.hosts[host].news == DT_QUARANTINE_NOTHING)
            add_name(r, &names, host);
        r->moved[host] = DT_REHOST_USED;
        dt_history_note_host(r->history, host, false, r->core->generation + 1);
    }
    if (names.len) {
        how = dt_xasprintf("with %s again", names.data);
        say_moved(r, how);
        free(how);
    }
    dt_strbuf_free(&names);
}

static void move_for_change(struct dt_rehost *r)
{
    struct dt_error err = { 0 };

    if (place_anew(r, &err) < 0) /* impossible: the current plan is one that fits */
        dt_verbose("%s", err.text);
    r->changed = false;
    tell_back(r);
    for (size_t i = 0; i < r->core->config->hosts->n; i++) {
        if (!r->lost[i]) /* a lost host does not come back when its time is over */
            tell_news(r, i);
    }
}

void dt_rehost_begin(struct dt_rehost *r, const struct dt_death *cause, bool progress)
{
    const struct dt_plan_node *node = dt_plan_node_of(&r->core->plan, (int)cause->rank);
    const struct dt_quarantine_failure f = {
        .host = node->host,
        .rank = cause->host ? DT_QUARANTINE_NO_RANK : cause->rank,
        .progress = progress,
        .time_ns = dt_core_now(r->core),
    };

    if (r->core->config->on_host_loss == DT_HOST_LOSS_MOVE &&
        dt_quarantine_failed(&r->quarantine, &f))
        r->changed = true;
    forget_retries(r);
    r->outage = false;
    dt_strbuf_free(&r->without);
    r->began_ns = f.time_ns;
}

void dt_rehost_reconnect(struct dt_rehost *r)
{
    for (size_t i = 0; i < r->core->plan.nnodes; i++) {
        size_t host = r->core->plan.nodes[i].host;

        if (r->core->links.v[host]->phase == DT_HOST_CLOSED && !r->retried[host] &&
            !r->lost[host]) {
            r->retried[host] = true;
            dt_verbose("%s: connecting again", dt_core_host_name(r->core, host));
            dt_hostlinks_open(&r->core->links, host);
        }
    }
}

void dt_rehost_lose(struct dt_rehost *r, size_t host)
{
    r->lost[host] = true;
}

void dt_rehost_take_back(struct dt_rehost *r, size_t host)
{
    r->lost[host] = false;
    r->changed = true;
    dt_history_note_host(r->history, host, r->quarantine.hosts[host].out, r->core->generation + 1);
}

uint64_t dt_rehost_left_out_s(const struct dt_rehost *r, size_t host)
{
    const struct dt_quarantine_host *q = &r->quarantine.hosts[host];
    uint64_t now_ns = dt_core_now(r->core);

    if (!q->out)
        return 0;
    return q->until_ns > now_ns ? (q->until_ns - now_ns) / 1000000000 + 1 : 1;
}

bool dt_rehost_spare(struct dt_rehost *r, size_t host)
{
    bool was_lost = r->lost[host], fits;
    struct dt_error err = { 0 };

    if (r->core->config->on_host_loss != DT_HOST_LOSS_MOVE)
        return false;
    r->lost[host] = true; /* for the plan */
    fits = fits_with_quarantined(r, &err);
    r->lost[host] = was_lost || fits;
    return fits;
}

bool dt_rehost_place(struct dt_rehost *r)
{
    bool moved = true;

    if (dt_timers_is_running(&r->core->timers, DT_TIMER_OUTAGE))
        return false;
    do {
        char *missing = drop_unusable(r);

        if (!missing && !r->changed) {
            tell_outage_over(r);
            tell_back(r);
            return true;
        }
        if (missing)
            moved = move_from_lost(r, missing);
        else
            move_for_change(r);
        free(missing);
    } while (moved && !open_new(r));
    return false;
}

/* No rank of this generation runs yet. */
static void put_off(struct dt_rehost *r)
{
    forget_retries(r);
    dt_history_last(r->history)->generation = r->core->generation + 1;
}

void dt_rehost_begin_anew(struct dt_rehost *r)
{
    if (r->core->state != DT_JOB_STARTING)
        return;
    put_off(r);
    dt_core_event(r->core, DT_EV_LEFT_OUT);
}

static void leave_out(struct dt_rehost *r)
{
    bool *out = dt_xcalloc(r->core->plan.nnodes, sizeof *out);

    dt_network_leave_out(r->network, out);
    put_off(r);
    for (size_t i = 0; i < r->core->plan.nnodes; i++) {
        size_t host = r->core->plan.nodes[i].host;

        if (!out[i])
            continue;
        r->lost[host] = true;
        dt_hostlink_close(r->core->links.v[host], "other hosts do not reach it");
        r->core->links.v[host]->told = true;
    }
    free(out);
    dt_core_event(r->core, DT_EV_LEFT_OUT);
}

bool dt_rehost_leave_out(struct dt_rehost *r)
{
    if (r->core->generation == 1 || r->core->config->on_host_loss != DT_HOST_LOSS_MOVE)
        return false;
    leave_out(r);
    return true;
}

void dt_rehost_init(struct dt_rehost *r, struct dt_core *core, const struct dt_network *network,
                    struct dt_history *history)
{
    size_t hosts = core->config->hosts->n;

    *r = (struct dt_rehost){ .core = core, .network = network, .history = history };
    dt_quarantine_init(&r->quarantine, hosts);
    r->lost = dt_xcalloc(hosts, sizeof *r->lost);
    r->moved = dt_xcalloc(hosts, sizeof *r->moved);
    r->retried = dt_xcalloc(hosts, sizeof *r->retried);
}

void dt_rehost_free(struct dt_rehost *r)
{
    dt_quarantine_free(&r->quarantine);
    free(r->lost);
    free(r->moved);
    free(r->retried);
    dt_strbuf_free(&r->without);
}
