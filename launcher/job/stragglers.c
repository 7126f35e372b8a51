#include "launcher/job/stragglers.h"

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"

enum {
    WARN_MS = 60 * 1000,
    MISSED_MS = 5 * 1000,
    AGAIN_MS = 100, /* while ranks are starting, or dtrun looks for the cause of a failure */
};

static bool is_missed(const struct dt_death *end)
{
    return end->code == 0 && end->signo == 0 && (end->flags & DT_EXITED_IN_MPI);
}

/* A short --exit-grace ends the job before a rank that left MPI counts as failed. */
static bool has_short_grace(const struct dt_stragglers *s)
{
    int grace_s = s->core->config->exit_grace_s;

    return grace_s && grace_s * 1000 <= MISSED_MS;
}

void dt_stragglers_watch(const struct dt_stragglers *s, const struct dt_death *end)
{
    int grace_s = s->core->config->exit_grace_s;
    bool missed = is_missed(end) && !has_short_grace(s);

    if (missed && !dt_timers_is_running(&s->core->timers, DT_TIMER_STRAGGLERS))
        dt_timers_set(&s->core->timers, DT_TIMER_STRAGGLERS, MISSED_MS);
    else if (missed)
        dt_timers_shorten(&s->core->timers, DT_TIMER_STRAGGLERS, MISSED_MS);
    else if (!dt_timers_is_running(&s->core->timers, DT_TIMER_STRAGGLERS) &&
             (grace_s || !s->warned))
        dt_timers_set(&s->core->timers, DT_TIMER_STRAGGLERS,
                      grace_s ? (uint64_t)grace_s * 1000 : WARN_MS);
}

static void warn(struct dt_stragglers *s)
{
    struct dt_strbuf b = { 0 };

    /* linked ranks: if one waited for a rank that has ended, the job would have failed */
    if (s->core->ranks.hellos > 0)
        return;
    s->warned = true;
    dt_strbuf_printf(&b, "a rank exited with 0 %d s ago; exited: ", WARN_MS / 1000);
    dt_ranks_words(&s->core->ranks, false, &b);
    dt_strbuf_puts(&b, "; still running: ");
    dt_ranks_words(&s->core->ranks, true, &b);
    dt_say("%s (--exit-grace SECONDS ends such a job)", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void end(struct dt_stragglers *s)
{
    int grace_s = s->core->config->exit_grace_s;
    struct dt_strbuf b = { 0 };

    dt_strbuf_printf(&b,
                     "a rank exited with 0 %d s ago (--exit-grace); stopping the ranks that are "
                     "still running: ",
                     grace_s);
    dt_ranks_words(&s->core->ranks, true, &b);
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
    dt_core_end(s->core, DT_EV_STOP, DT_EXIT_TIMEOUT,
                dt_xasprintf("ranks still ran %d s after the first had exited with 0", grace_s));
}

/* Returns the first rank that left MPI without MPI_Finalize, or NULL. */
static const struct dt_death *find_missed(const struct dt_ranks *ranks)
{
    for (uint32_t r = 0; r < ranks->np; r++) {
        if (ranks->v[r].ended && is_missed(&ranks->v[r].end))
            return &ranks->v[r].end;
    }
    return NULL;
}

static void fail(const struct dt_stragglers *s, const struct dt_death *end)
{
    struct dt_death death = *end;

    death.missed = true;
    dt_deaths_add(s->deaths, &death);
    dt_core_event(s->core, DT_EV_RANK_FAILED);
}

void dt_stragglers_on_late(struct dt_stragglers *s)
{
    const struct dt_death *missed = find_missed(&s->core->ranks);

    if (s->core->state == DT_JOB_STARTING || s->core->state == DT_JOB_FAILING)
        dt_timers_set(&s->core->timers, DT_TIMER_STRAGGLERS, AGAIN_MS);
    else if (s->core->state != DT_JOB_RUNNING || dt_ranks_alive(&s->core->ranks) == 0)
        return;
    else if (missed && !has_short_grace(s))
        fail(s, missed);
    else if (s->core->config->exit_grace_s)
        end(s);
    else
        warn(s);
}
