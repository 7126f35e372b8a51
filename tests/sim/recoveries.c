/* What dtrun must say of each restart, in its report and to the user: from which checkpoint it
 * began, how long it waited, and when the job had recovered. That is when the ranks have restored
 * or saved, or when they run if they do neither. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/world.h"

static struct sim_recovery *last(struct sim_world *w)
{
    struct sim_recoveries *r = &w->witness.recoveries;

    return r->n && r->n <= SIM_RECOVERIES_MAX ? &r->v[r->n - 1] : NULL;
}

static bool is_open(struct sim_world *w)
{
    return last(w) && !last(w)->over;
}

void sim_recovery_planned(struct sim_world *w, int64_t step, uint64_t delay_ns)
{
    struct sim_recoveries *r = &w->witness.recoveries;

    r->began_ns = w->now_ns;
    if (r->n++ >= SIM_RECOVERIES_MAX)
        return;
    r->v[r->n - 1] = (struct sim_recovery){ .generation = w->witness.generation + 1,
                                            .step = step,
                                            .delay_ns = delay_ns };
}

/* Hosts that did not reach each other are left out, so ranks start in a later generation. */
void sim_recovery_put_off(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (last(w))
        last(w)->generation = x->generation + 1;
    x->recalled += x->recalled + 1 == x->generation;
}

/* Ranks find another checkpoint than was known. */
void sim_recovery_told(struct sim_world *w, const struct dt_msg_commit *m)
{
    const struct sim_restarts *r = &w->witness.restarts;

    if (!last(w) || last(w)->generation != m->generation)
        return;
    if (m->kind == DT_RESTORED && (is_open(w) || !r->saved))
        last(w)->step = m->step;
    w->witness.recoveries.due = is_open(w);
}

void sim_recovery_all_run(struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    if (x->running == x->nodes && !x->restarts.saved && !x->restarts.restoring && !x->ncauses &&
        !x->decided && !x->norders)
        w->witness.recoveries.due = is_open(w);
}

void sim_check_recovery_said(struct sim_world *w, const char *line)
{
    struct sim_witness *x = &w->witness;
    bool linked = strncmp(line, "dtrun: recovered in ", 20) == 0;

    if (!linked && strncmp(line, "dtrun: all ranks run again after ", 33) != 0)
        return;
    if (!is_open(w))
        sim_broken(w, "dtrun says a second time that the job has recovered");
    else if (!x->recoveries.due && x->ended_well != w->s->np)
        sim_broken(w, "dtrun says that the job has recovered, and it has not");
    if (linked != x->restarts.met)
        sim_broken(w, "dtrun says that the job %s", linked ? "has recovered" : "runs again");
    if (last(w))
        last(w)->over = true;
    x->restarts.again_ns = w->now_ns;
    x->recoveries.due = false;
}

void sim_check_recovery_handled(struct sim_world *w)
{
    if (w->witness.recoveries.due)
        sim_broken(w, "dtrun does not say that the job has recovered");
}

/* ---- the report ---- */

static double number(const cJSON *item, const char *name, double otherwise)
{
    const cJSON *value = cJSON_GetObjectItem(item, name);

    return value && cJSON_IsNumber(value) ? value->valuedouble : otherwise;
}

static void check_one(struct sim_world *w, const cJSON *item, const struct sim_recovery *r)
{
    bool over = !cJSON_IsNull(cJSON_GetObjectItem(item, "seconds"));

    if ((uint32_t)number(item, "generation", 0) != r->generation)
        sim_broken(w, "the report has a restart as generation %.0f, not %u",
                   number(item, "generation", 0), r->generation);
    if ((int64_t)number(item, "from_step", -1) != r->step)
        sim_broken(w, "the report says that generation %u began from step %.0f, not %" PRId64,
                   r->generation, number(item, "from_step", -1), r->step);
    if ((uint64_t)number(item, "delay_seconds", -1) != r->delay_ns / SIM_S)
        sim_broken(w, "the report says that generation %u waited %.0f s", r->generation,
                   number(item, "delay_seconds", -1));
    if (over != r->over)
        sim_broken(w, "the report says that generation %u has %srecovered", r->generation,
                   over ? "" : "not ");
}

void sim_check_recoveries(struct sim_world *w, const cJSON *report)
{
    const struct sim_recoveries *r = &w->witness.recoveries;
    const cJSON *list = cJSON_GetObjectItem(report, "recoveries");

    if (dt_job_exit_code(w->job) == 0 && is_open(w))
        sim_broken(w, "all has gone well, and dtrun does not say that the job had recovered");
    for (uint32_t i = 0; i < r->n && i < SIM_RECOVERIES_MAX; i++)
        check_one(w, cJSON_GetArrayItem(list, (int)i), &r->v[i]);
}
