#include "launcher/job/report.h"

#include <cjson/cJSON.h>

#include "launcher/io/json.h"
#include "launcher/job/state/exitpolicy.h"
#include "launcher/place/role.h"

/* null for a job that did not fail. rank is null unless a rank was the cause; code and signal are
 * null unless a process was. */
static void add_cause(const struct dt_core *c, cJSON *to)
{
    const struct dt_death *d = c->outcome.has_cause ? &c->outcome.cause : NULL;
    bool process = d && !d->host, rank = process && !d->auxiliary;
    char role[DT_ROLE_NAME_MAX];
    const struct dt_plan_node *node = d ? dt_plan_node_of(&c->plan, (int)d->rank) : NULL;
    cJSON *cause;

    if (!c->outcome.reason) {
        cJSON_AddNullToObject(to, "cause");
        return;
    }
    cause = cJSON_AddObjectToObject(to, "cause");
    dt_json_add_number(cause, "rank", rank, rank ? d->rank : 0);
    if (c->ranks.nprocs > c->ranks.np)
        dt_json_add_text(cause, "role", process ? dt_role_name(role, d->rank, c->ranks.np) : NULL);
    dt_json_add_text(cause, "host", node ? dt_core_host_name(c, node->host) : NULL);
    dt_json_add_number(cause, "code", process && d->signo == 0 && !d->hung, process ? d->code : 0);
    dt_json_add_number(cause, "signal", process && d->signo != 0, process ? d->signo : 0);
    dt_json_add_text(cause, "message", c->outcome.reason);
}

static void add_recoveries(const struct dt_history *h, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "recoveries");

    for (size_t i = 0; i < h->nrecoveries; i++) {
        const struct dt_recovery_record *r = &h->recoveries[i];
        cJSON *item = cJSON_CreateObject();

        cJSON_AddNumberToObject(item, "generation", r->generation);
        cJSON_AddStringToObject(item, "mode", "restart");
        dt_json_add_text(item, "cause", r->cause);
        dt_json_add_number(item, "from_step", r->from_step >= 0, (double)r->from_step);
        cJSON_AddStringToObject(item, "source", r->from_step >= 0 ? "checkpoint" : "none");
        cJSON_AddNumberToObject(item, "delay_seconds", r->delay_s);
        cJSON_AddNumberToObject(item, "detect_seconds", r->detect_seconds);
        dt_json_add_number(item, "seconds", r->seconds >= 0, r->seconds);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_absences(const struct dt_core *c, const struct dt_history *h, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "left_out");

    for (size_t i = 0; i < h->nabsences; i++) {
        const struct dt_absence *absence = &h->absences[i];
        cJSON *item = cJSON_CreateObject();

        dt_json_add_text(item, "host", dt_core_host_name(c, absence->host));
        cJSON_AddNumberToObject(item, "from_generation", absence->from);
        dt_json_add_number(item, "until_generation", absence->until != 0, absence->until);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_lost_hosts(const struct dt_core *c, const struct dt_rehost *r, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "lost_hosts");

    for (size_t i = 0; i < c->config->hosts->n; i++) {
        cJSON *item;

        if (!dt_rehost_is_away(r, i))
            continue;
        item = cJSON_CreateObject();
        dt_json_add_text(item, "host", dt_core_host_name(c, i));
        dt_json_add_text(item, "message", dt_hostlink_why(c->links.v[i]));
        cJSON_AddItemToArray(list, item);
    }
}

static void add_notes(const struct dt_core *c, const struct dt_history *h, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "notes");

    for (size_t i = 0; i < h->nnotes; i++) {
        cJSON *item = cJSON_CreateObject();

        cJSON_AddNumberToObject(item, "generation", h->notes[i].generation);
        dt_json_add_text(item, "host", dt_core_host_name(c, h->notes[i].host));
        dt_json_add_text(item, "text", h->notes[i].text);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_process(const struct dt_rank *r, cJSON *to)
{
    bool known = r->ended && (r->end.code >= 0 || r->end.signo);

    dt_json_add_number(to, "pid", r->pid != 0, r->pid);
    dt_json_add_number(to, "exit_code", known,
                       known ? dt_exit_of_rank(r->end.code, r->end.signo) : 0);
}

static void add_ranks(const struct dt_core *c, cJSON *to)
{
    cJSON *list = cJSON_AddArrayToObject(to, "ranks");

    for (uint32_t i = 0; i < c->ranks.np; i++) {
        const struct dt_rank *r = &c->ranks.v[i];
        const struct dt_plan_node *node = dt_plan_node_of(&c->plan, (int)i);
        cJSON *item = cJSON_CreateObject();

        cJSON_AddNumberToObject(item, "rank", i);
        dt_json_add_text(item, "host", dt_core_host_name(c, node->host));
        cJSON_AddNumberToObject(item, "local_rank", dt_plan_local_rank(node, (int)i));
        dt_json_add_text(item, "device", r->device);
        add_process(r, item);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_auxiliaries(const struct dt_core *c, cJSON *to)
{
    cJSON *list = c->ranks.nprocs > c->ranks.np ? cJSON_AddArrayToObject(to, "auxiliaries") : NULL;
    char role[DT_ROLE_NAME_MAX];

    for (uint32_t i = c->ranks.np; i < c->ranks.nprocs; i++) {
        const struct dt_plan_node *node = dt_plan_node_of(&c->plan, (int)i);
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "role", dt_role_name(role, i, c->ranks.np));
        dt_json_add_text(item, "host", dt_core_host_name(c, node->host));
        add_process(&c->ranks.v[i], item);
        cJSON_AddItemToArray(list, item);
    }
}

/* The number of steps that are known to be lost; null if that is 0 and some restart may have lost
 * more. */
static void add_lost_steps(const struct dt_history *h, cJSON *to)
{
    bool known = true;
    int64_t lost = dt_history_lost_steps(h, &known);

    dt_json_add_number(to, "lost_steps", known || lost > 0, (double)lost);
}

char *dt_report_make(const struct dt_core *c, const struct dt_recovery *r, double seconds)
{
    cJSON *root = cJSON_CreateObject();

    cJSON_AddStringToObject(root, "version", PACKAGE_VERSION);
    dt_json_add_texts(root, "command", &c->config->argv);
    cJSON_AddNumberToObject(root, "np", c->ranks.np);
    cJSON_AddNumberToObject(root, "exit_code", c->outcome.exit_code);
    cJSON_AddNumberToObject(root, "seconds", seconds);
    add_cause(c, root);
    cJSON_AddNumberToObject(root, "restarts", r->restart.restarts);
    add_lost_steps(&r->history, root);
    add_recoveries(&r->history, root);
    add_absences(c, &r->history, root);
    add_lost_hosts(c, &r->rehost, root);
    add_notes(c, &r->history, root);
    add_ranks(c, root);
    add_auxiliaries(c, root);
    return dt_json_text(root);
}
