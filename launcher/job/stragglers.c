#include "launcher/job/stragglers.h"

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"

enum {
    WARN_MS = 60 * 1000,
    MISSED_MS = 5 * 1000,
    AGAIN_MS = 100, /* while ranks are starting, or dtrun looks for the cause of a failure */
};

static bool is_any_missed(const struct dt_ranks *r)
{
    return r->in_mpi > 0 && r->missed > 0;
}

static void watch_mpi(const struct dt_stragglers *s)
{
    struct dt_timers *timers = &s->core->timers;

    if (!is_any_missed(&s->core->ranks))
        dt_timers_stop(timers, DT_TIMER_MISSED);
    else if (!dt_timers_is_running(timers, DT_TIMER_MISSED))
        dt_timers_set(timers, DT_TIMER_MISSED, MISSED_MS);
}

void dt_stragglers_watch(const struct dt_stragglers *s)
{
    int grace_s = s->core->config->exit_grace_s;

    if (!dt_timers_is_running(&s->core->timers, DT_TIMER_STRAGGLERS) && (grace_s || !s->warned))
        dt_timers_set(&s->core->timers, DT_TIMER_STRAGGLERS,
                      grace_s ? (uint64_t)grace_s * 1000 : WARN_MS);
    watch_mpi(s);
}

void dt_stragglers_on_mpi_state(const struct dt_stragglers *s, const struct dt_msg_mpi_state *m)
{
    if (m->generation != s->core->generation || m->rank >= s->core->ranks.np)
        return;
    dt_ranks_mpi(&s->core->ranks, m->rank, m->inside);
    watch_mpi(s);
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

static bool is_to_wait(const struct dt_core *c)
{
    return c->state == DT_JOB_STARTING || c->state == DT_JOB_FAILING;
}

void dt_stragglers_on_late(struct dt_stragglers *s)
{
    if (is_to_wait(s->core))
        dt_timers_set(&s->core->timers, DT_TIMER_STRAGGLERS, AGAIN_MS);
    else if (s->core->state != DT_JOB_RUNNING || dt_ranks_alive(&s->core->ranks) == 0)
        return;
    else if (s->core->config->exit_grace_s)
        end(s);
    else
        warn(s);
}

/* Returns the call without which the rank exited with 0, or NULL. */
static const char *find_missed_call(const struct dt_rank *r)
{
    if (!r->ended || r->end.code != 0 || r->mpi == DT_MPI_FINALIZED)
        return NULL;
    return r->mpi == DT_MPI_INSIDE ? "MPI_Finalize" : "MPI_Init";
}

static void fail(const struct dt_stragglers *s)
{
    const struct dt_rank *r = s->core->ranks.v;
    struct dt_death death;

    while (!find_missed_call(r))
        r++;
    death = r->end;
    death.missed = find_missed_call(r);
    dt_deaths_add(s->deaths, &death);
    dt_core_event(s->core, DT_EV_RANK_FAILED);
}

void dt_stragglers_on_missed(const struct dt_stragglers *s)
{
    if (is_to_wait(s->core))
        dt_timers_set(&s->core->timers, DT_TIMER_MISSED, AGAIN_MS);
    else if (s->core->state == DT_JOB_RUNNING && is_any_missed(&s->core->ranks))
        fail(s);
}
