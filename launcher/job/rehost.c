/* Placing the ranks on other hosts when they are started again: without hosts that are lost, or
 * that are in quarantine because the job's failures begin there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/watch/words.h"

static bool is_usable(const struct dt_job *j, size_t host)
{
    return !j->lost[host] && !j->quarantine.hosts[host].out;
}

/* The hosts that can be used, in a list of their own; index[i] is the place of its i-th in the
 * job's. */
static void list_usable(const struct dt_job *j, struct dt_hostlist *list, size_t *index)
{
    const struct dt_hostlist *all = j->core.config->hosts;

    list->v = dt_xcalloc(all->n, sizeof *list->v);
    for (size_t i = 0; i < all->n; i++) {
        if (!is_usable(j, i))
            continue;
        index[list->n] = i;
        list->v[list->n++] = all->v[i];
    }
}

static int place_on_usable(struct dt_job *j, struct dt_error *err)
{
    size_t *index = dt_xcalloc(j->core.config->hosts->n, sizeof *index);
    struct dt_hostlist list = { 0 };
    const struct dt_placement how = { .map_by = j->core.config->map_by,
                                      .no_oversubscribe = j->core.config->no_oversubscribe,
                                      .servers = dt_plan_servers(&j->core.plan) };
    struct dt_plan plan = { 0 };
    int rc;

    list_usable(j, &list, index);
    rc = list.n ? dt_plan_make(&plan, &list, (int)j->core.ranks.np, &how, err)
                : dt_error_set(err, "no host is left");
    if (rc == 0) {
        for (size_t i = 0; i < plan.nnodes; i++)
            plan.nodes[i].host = index[plan.nodes[i].host];
        dt_plan_free(&j->core.plan);
        j->core.plan = plan;
    }
    free(list.v); /* its entries belong to the job's list */
    free(index);
    return rc;
}

/* Rather than give up the job uses hosts that are in quarantine. */
static int place_anew(struct dt_job *j, struct dt_error *err)
{
    if (place_on_usable(j, err) == 0)
        return 0;
    j->rehost |= dt_quarantine_end_all(&j->quarantine);
    return place_on_usable(j, err);
}

static void say_moved(const struct dt_job *j, const char *how)
{
    struct dt_strbuf b = { 0 };

    dt_words_count(&b, j->core.ranks.np, "rank");
    dt_strbuf_puts(&b, " on the ");
    dt_words_count(&b, (uint64_t)j->core.plan.slots, "slot");
    dt_strbuf_puts(&b, " of ");
    dt_words_count(&b, j->core.plan.nnodes, "host");
    dt_say("going on %s: %s%s", how, dt_strbuf_text(&b),
           j->core.plan.oversubscribed ? ", devices are shared" : "");
    dt_strbuf_free(&b);
}

/* Marks the plan's hosts that did not come back as lost and names them; NULL when all are there. */
static char *drop_missing(struct dt_job *j)
{
    struct dt_strbuf names = { 0 };

    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        size_t host = j->core.plan.nodes[i].host;
        const struct dt_hostlink *h = j->core.links.v[host];

        if (h->phase != DT_HOST_CLOSED)
            continue;
        j->lost[host] = true;
        dt_verbose("%s: %s", dt_core_host_name(&j->core, host), h->why.text);
        dt_strbuf_printf(&names, "%s%s", names.len ? ", " : "", dt_core_host_name(&j->core, host));
    }
    return names.data;
}

/* A host that had no ranks so far may turn out to be one that has: it cannot help then. It is the
 * later of the two, for a plan takes hosts in order. */
static char *drop_duplicate_host(struct dt_job *j)
{
    size_t one, other;

    if (!dt_core_find_duplicate_hosts(&j->core, &one, &other))
        return NULL;
    dt_say("%s and %s are one machine", dt_core_host_name(&j->core, one),
           dt_core_host_name(&j->core, other));
    j->lost[other] = true;
    return dt_xstrdup(dt_core_host_name(&j->core, other));
}

/* A new plan may use hosts that had no ranks so far. */
static bool open_new(struct dt_job *j)
{
    bool opened = false;

    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        size_t host = j->core.plan.nodes[i].host;

        if (j->core.links.v[host] &&
            (j->core.links.v[host]->phase != DT_HOST_CLOSED || j->retried[host]))
            continue;
        j->retried[host] = true;
        dt_hostlinks_open(&j->core.links, host);
        opened = true;
    }
    return opened;
}

/* Returns false when the job has to end. */
static bool move_from_lost(struct dt_job *j, const char *lost)
{
    struct dt_error err = { 0 };
    char *how;

    if (j->core.config->on_host_loss == DT_HOST_LOSS_STOP)
        dt_error_set(&err, "--on-host-loss stop was given");
    if (err.text[0] || place_anew(j, &err) < 0) {
        dt_say("giving up: %s cannot be used any more, and %s", lost, err.text);
        dt_core_end(&j->core, DT_EV_FAILED, DT_EXIT_LAUNCH,
                    dt_xasprintf("%s lost: %s", lost, err.text));
        return false;
    }
    how = dt_xasprintf("without %s", lost);
    say_moved(j, how);
    free(how);
    return true;
}

/* As the end of "going on ..."; NULL: nothing new. The caller frees it. */
static char *describe_news(const struct dt_job *j, size_t host)
{
    const struct dt_quarantine_host *q = &j->quarantine.hosts[host];
    const char *name = dt_core_host_name(&j->core, host);

    switch (q->news) {
    case DT_QUARANTINE_OUT:
        return dt_xasprintf("without %s for %" PRIu64 " s at least, since failures begin there "
                            "(%u in a row without progress)",
                            name, dt_quarantine_seconds(q), j->quarantine.failures);
    case DT_QUARANTINE_BACK:
        return dt_xasprintf("with %s again", name);
    case DT_QUARANTINE_CLEARED:
        return dt_xasprintf("with %s again, since rank %u fails elsewhere, too", name,
                            j->quarantine.rank);
    default:
        return NULL;
    }
}

static void move_for_quarantine(struct dt_job *j)
{
    struct dt_error err = { 0 };

    if (place_anew(j, &err) < 0) /* which the plan so far shows to be possible */
        dt_verbose("%s", err.text);
    j->rehost = false;
    for (size_t i = 0; i < j->core.config->hosts->n; i++) {
        char *how = describe_news(j, i);

        dt_history_note_host(&j->history, i, j->quarantine.hosts[i].out, j->core.generation + 1);
        if (how)
            say_moved(j, how);
        free(how);
    }
}

void dt_job_judge_host(struct dt_job *j, const struct dt_death *cause)
{
    const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, (int)cause->rank);
    const struct dt_quarantine_failure f = {
        .host = node->host,
        .rank = cause->host ? DT_QUARANTINE_NO_RANK : cause->rank,
        .progress = j->restart.no_progress <= 1,
        .time_ns = dt_core_now(&j->core),
    };

    if (j->core.config->on_host_loss == DT_HOST_LOSS_MOVE &&
        dt_quarantine_failed(&j->quarantine, &f))
        j->rehost = true;
}

bool dt_job_rehost(struct dt_job *j)
{
    bool failed = false, opened = false;

    while (!failed && !opened) {
        char *missing = drop_missing(j);

        if (!missing)
            missing = drop_duplicate_host(j);
        if (!missing && !j->rehost)
            return true;
        if (missing)
            failed = !move_from_lost(j, missing);
        else
            move_for_quarantine(j);
        free(missing);
        opened = !failed && open_new(j);
    }
    return false;
}

static void refuse(struct dt_job *j)
{
    char *text = dt_xasprintf("the hosts cannot reach each other%s; --iface chooses between their "
                              "networks",
                              j->core.generation == 1 ? ", nothing was started" : "");

    dt_refusal_add(&j->refusal, text, NULL, DT_EXIT_LAUNCH);
    dt_core_event(&j->core, DT_EV_SPAWN_FAILED);
}

/* No rank of this generation runs yet. */
static void leave_out(struct dt_job *j)
{
    bool *out = dt_xcalloc(j->core.plan.nnodes, sizeof *out);

    dt_network_leave_out(&j->network, out);
    memset(j->retried, 0, j->core.config->hosts->n * sizeof *j->retried); /* a new recovery */
    dt_history_last(&j->history)->generation = j->core.generation + 1;
    for (size_t i = 0; i < j->core.plan.nnodes; i++) {
        size_t host = j->core.plan.nodes[i].host;

        if (!out[i])
            continue;
        j->retried[host] = true;
        dt_hostlink_close(j->core.links.v[host], "other hosts do not reach it");
    }
    free(out);
    dt_core_event(&j->core, DT_EV_CUT_OFF);
}

/* At the first start the user has to decide what was meant. A job that has run goes on as it can.
 */
void dt_job_on_network_broken(struct dt_job *j)
{
    if (j->core.generation > 1 && j->core.config->on_host_loss == DT_HOST_LOSS_MOVE)
        leave_out(j);
    else
        refuse(j);
}
