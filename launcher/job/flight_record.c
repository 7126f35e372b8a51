/* What ranks tell of their last calls, said once they all have had the time to. */
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/job/engine.h"

enum { WAIT_MS = 300 }; /* for other ranks, where the job goes on */

/* Who has called dt_finalize had no more to tell. */
static bool was_cut_short(const struct dt_rank *r)
{
    return r->hello && r->ended && (r->end.flags & DT_EXITED_STOPPED) &&
           !(r->end.flags & DT_EXITED_FINALIZED);
}

static void note_ended(struct dt_job *j)
{
    for (uint32_t r = 0; r < j->core.ranks.np; r++) {
        if (was_cut_short(&j->core.ranks.v[r]))
            dt_flight_record_ended(&j->last_calls, r);
    }
}

void dt_job_say_last_calls(struct dt_job *j)
{
    struct dt_strbuf b = { 0 };
    char *rest = NULL;

    dt_timers_stop(&j->core.timers, DT_TIMER_LAST_CALLS);
    note_ended(j);
    dt_flight_record_words(&j->last_calls, &b);
    for (char *line = b.data ? strtok_r(b.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        dt_say("%s", line);
    dt_strbuf_free(&b);
    dt_flight_record_said(&j->last_calls);
}

/* Whether the job begins again or ends is decided while it fails: each says it, or not. */
void dt_job_on_last_calls_due(struct dt_job *j)
{
    if (j->core.state != DT_JOB_FAILING)
        dt_job_say_last_calls(j);
}

/* That a rank has gone, and that all begin again, is said; in which calls the others were when they
 * learned of it is nothing more. */
void dt_job_forget_last_calls(struct dt_job *j)
{
    if (j->last_calls.own)
        dt_job_say_last_calls(j);
    dt_timers_stop(&j->core.timers, DT_TIMER_LAST_CALLS);
    dt_flight_record_free(&j->last_calls);
}

/* Ranks that are told to end leave their calls because of that. */
static bool is_of_interest(const struct dt_job *j, const struct dt_msg_last_calls *m)
{
    return m->generation == j->core.generation && j->core.state != DT_JOB_OVER &&
           !j->told_to_stop && m->rank < j->core.ranks.np && j->core.state != DT_JOB_RECOVERING;
}

void dt_job_on_last_calls(struct dt_job *j, const struct dt_hostlink *h,
                          const struct dt_msg_last_calls *m)
{
    if (!is_of_interest(j, m))
        return;
    dt_flight_record_add(&j->last_calls, dt_core_host_name(&j->core, h->host), m);
    if (!dt_timers_runs(&j->core.timers, DT_TIMER_LAST_CALLS))
        dt_timers_set(&j->core.timers, DT_TIMER_LAST_CALLS, WAIT_MS);
}
