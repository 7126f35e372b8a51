#include "launcher/job/auxiliaries.h"

#include <stdio.h>

#include "launcher/base/log.h"
#include "launcher/place/role.h"
#include "launcher/watch/words.h"

enum {
    END_MS = 5 * 1000,
    AGAIN_MS = 100, /* while ranks are starting, or dtrun looks for the cause of a failure */
};

static bool only_auxiliaries_are_left(const struct dt_auxiliaries *a)
{
    const struct dt_ranks *ranks = &a->core->ranks;

    return ranks->nprocs > ranks->np && ranks->ended_well == ranks->np;
}

static bool has_failed(const struct dt_auxiliaries *a)
{
    return dt_deaths_cause(a->deaths, a->core->ranks.linked_alive > 0) != NULL;
}

static void say_pardoned(const struct dt_auxiliaries *a, const struct dt_death *death)
{
    const struct dt_plan_node *node = dt_plan_node_of(&a->core->plan, (int)death->rank);
    struct dt_strbuf text = { 0 };

    if (a->core->told_to_stop || (death->flags & DT_EXITED_STOPPED) ||
        (death->code == 0 && death->signo == 0))
        return;
    dt_words_death(&text, death, a->core->ranks.np, dt_core_host_name(a->core, node->host),
                   a->core->ranks.v[death->rank].pid);
    dt_say("%s; all ranks have exited with 0, so this is not a failure", dt_strbuf_text(&text));
    dt_strbuf_free(&text);
}

void dt_auxiliaries_on_exit(const struct dt_auxiliaries *a, const struct dt_death *death)
{
    if (only_auxiliaries_are_left(a))
        say_pardoned(a, death);
    else
        dt_deaths_add(a->deaths, death);
}

bool dt_auxiliaries_pardon_host(const struct dt_auxiliaries *a, const struct dt_hostlink *h)
{
    struct dt_strbuf text = { 0 };

    if (!only_auxiliaries_are_left(a))
        return false;
    dt_hostlink_describe_loss(h, dt_core_host_name(a->core, h->host), &text);
    dt_say("%s; all ranks have exited with 0, so this is not a failure", dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    return true;
}

/* Auxiliaries that died while the last ranks were ending have done no harm. */
static void pardon(const struct dt_auxiliaries *a)
{
    size_t n = a->deaths->n;

    dt_deaths_forget(a->deaths);
    for (size_t i = 0; i < n; i++) {
        struct dt_death death = a->deaths->v[i];

        if (death.auxiliary)
            say_pardoned(a, &death);
        else
            dt_deaths_add(a->deaths, &death);
    }
}

void dt_auxiliaries_watch(const struct dt_auxiliaries *a)
{
    if (!only_auxiliaries_are_left(a))
        return;
    pardon(a);
    dt_timers_set(&a->core->timers, DT_TIMER_AUXILIARIES, END_MS);
}

/* why: the reason, as "all ranks ended 5 s ago". */
static void end(const struct dt_auxiliaries *a, const char *why)
{
    const struct dt_ranks *ranks = &a->core->ranks;
    struct dt_msg_stop stop = { .grace_ms = (uint32_t)a->core->config->kill_grace_s * 1000 };
    struct dt_strbuf names = { 0 };
    char name[DT_ROLE_NAME_MAX];

    for (uint32_t i = ranks->np; i < ranks->nprocs; i++) {
        if (!ranks->v[i].ended)
            dt_strbuf_printf(&names, "%s%s", names.len ? ", " : "",
                             dt_role_name(name, i, ranks->np));
    }
    if (names.len)
        dt_say("%s; stopping what still runs beside them: %s", why, dt_strbuf_text(&names));
    dt_strbuf_free(&names);
    dt_hostlinks_send_all(&a->core->links, DT_MSG_STOP, &stop);
}

void dt_auxiliaries_on_late(const struct dt_auxiliaries *a)
{
    char why[80];

    snprintf(why, sizeof why, "all ranks ended %d s ago", END_MS / 1000);
    if (a->core->state == DT_JOB_STARTING || a->core->state == DT_JOB_FAILING)
        dt_timers_set(&a->core->timers, DT_TIMER_AUXILIARIES, AGAIN_MS);
    else if (a->core->state == DT_JOB_RUNNING)
        end(a, why);
}

bool dt_auxiliaries_end(const struct dt_auxiliaries *a)
{
    char why[80];
    enum dt_job_state state = a->core->state;
    bool failed = state != DT_JOB_RUNNING && (state != DT_JOB_FAILING || has_failed(a));

    if (failed || !only_auxiliaries_are_left(a))
        return false;
    /* the failure is about to be pardoned: the job will be RUNNING */
    if (state == DT_JOB_FAILING) {
        dt_timers_set(&a->core->timers, DT_TIMER_TIMEOUT, AGAIN_MS);
        return true;
    }
    if (!dt_timers_is_running(&a->core->timers,
                              DT_TIMER_AUXILIARIES)) /* they are being ended already */
        return true;
    snprintf(why, sizeof why, "the time limit of %d s is over, and all ranks have ended",
             a->core->config->timeout_s);
    dt_timers_stop(&a->core->timers, DT_TIMER_AUXILIARIES);
    end(a, why);
    return true;
}
