/* The auxiliaries of a job once its ranks have ended. The scheduler and the servers learn
 * from the ranks that the job is over, and end by themselves; those that do not are ended. */
#include <stdio.h>

#include "launcher/base/log.h"
#include "launcher/job/engine.h"
#include "launcher/watch/words.h"

enum {
    END_MS = 5 * 1000, /* said in words, too */
    AGAIN_MS = 100,    /* while others have not begun, or it is being found out who has failed */
};

static bool ranks_are_through(const struct dt_job *j)
{
    return j->core.ranks.ended_well == j->core.ranks.np;
}

static void say_pardoned(const struct dt_job *j, const struct dt_death *death)
{
    const struct dt_plan_node *node = dt_plan_node_of(&j->core.plan, (int)death->rank);
    struct dt_strbuf text = { 0 };

    if (j->told_to_stop || (death->flags & DT_EXITED_STOPPED) ||
        (death->code == 0 && death->signo == 0))
        return;
    dt_words_death(&text, death, j->core.ranks.np, dt_core_host_name(&j->core, node->host),
                   j->core.ranks.v[death->rank].pid);
    dt_say("%s; all ranks have exited with 0, so this is not a failure", dt_strbuf_text(&text));
    dt_strbuf_free(&text);
}

void dt_job_on_auxiliary_exit(struct dt_job *j, const struct dt_death *death)
{
    if (ranks_are_through(j))
        say_pardoned(j, death);
    else
        dt_deaths_add(&j->deaths, death);
}

bool dt_job_pardon_host(const struct dt_job *j, const struct dt_hostlink *h)
{
    struct dt_strbuf text = { 0 };

    if (j->core.ranks.nprocs == j->core.ranks.np || !ranks_are_through(j))
        return false;
    dt_hostlink_describe_loss(h, dt_core_host_name(&j->core, h->host), &text);
    dt_say("%s; all ranks have exited with 0, so this is not a failure", dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    return true;
}

/* Those who died while the last ranks were ending have done no harm. */
static void pardon(struct dt_job *j)
{
    size_t n = j->deaths.n;

    dt_deaths_forget(&j->deaths);
    for (size_t i = 0; i < n; i++) {
        struct dt_death death = j->deaths.v[i];

        if (death.auxiliary)
            say_pardoned(j, &death);
        else
            dt_deaths_add(&j->deaths, &death);
    }
}

void dt_job_watch_auxiliaries(struct dt_job *j)
{
    if (j->core.ranks.nprocs == j->core.ranks.np || !ranks_are_through(j))
        return;
    pardon(j);
    dt_timers_set(&j->core.timers, DT_TIMER_AUXILIARIES, END_MS);
}

/* why: what has come, "all ranks ended 5 s ago". */
static void end(struct dt_job *j, const char *why)
{
    struct dt_msg_stop stop = { .grace_ms = (uint32_t)j->core.config->kill_grace_s * 1000 };
    struct dt_strbuf names = { 0 };
    char name[DT_ROLE_NAME_MAX];

    for (uint32_t i = j->core.ranks.np; i < j->core.ranks.nprocs; i++)
        if (!j->core.ranks.v[i].ended)
            dt_strbuf_printf(&names, "%s%s", names.len ? ", " : "",
                             dt_role_name(name, i, j->core.ranks.np));
    if (names.len)
        dt_say("%s; stopping what still runs beside them: %s", why, dt_strbuf_text(&names));
    dt_strbuf_free(&names);
    dt_hostlinks_send_all(&j->core.links, DT_MSG_STOP, &stop);
}

void dt_job_on_auxiliaries_late(struct dt_job *j)
{
    if (j->core.state == DT_JOB_STARTING || j->core.state == DT_JOB_FAILING)
        dt_timers_set(&j->core.timers, DT_TIMER_AUXILIARIES, AGAIN_MS);
    else if (j->core.state == DT_JOB_RUNNING)
        end(j, "all ranks ended 5 s ago");
}

bool dt_job_end_auxiliaries(struct dt_job *j)
{
    char why[80];
    bool failed = j->core.state != DT_JOB_RUNNING &&
                  (j->core.state != DT_JOB_FAILING || dt_job_cause(j) != NULL);

    if (failed || j->core.ranks.nprocs == j->core.ranks.np || !ranks_are_through(j))
        return false;
    if (j->core.state == DT_JOB_FAILING) { /* whoever failed is pardoned: it will go on running */
        dt_timers_set(&j->core.timers, DT_TIMER_LIMIT, AGAIN_MS);
        return true;
    }
    if (!dt_timers_runs(&j->core.timers, DT_TIMER_AUXILIARIES)) /* they are being ended already */
        return true;
    snprintf(why, sizeof why, "the time limit of %d s is over, and all ranks have ended",
             j->core.config->timeout_s);
    dt_timers_stop(&j->core.timers, DT_TIMER_AUXILIARIES);
    end(j, why);
    return true;
}
