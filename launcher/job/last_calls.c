#include "launcher/job/last_calls.h"

#include <string.h>

#include "launcher/base/log.h"

enum { WAIT_MS = 300 }; /* for the reports of other ranks, if the job goes on */

/* A rank that has called dt_finalize has nothing left to report. */
static bool was_cut_short(const struct dt_rank *r)
{
    return r->hello && r->ended && (r->end.flags & DT_EXITED_STOPPED) &&
           !(r->end.flags & DT_EXITED_FINALIZED);
}

static void note_ended(struct dt_last_calls *l)
{
    for (uint32_t r = 0; r < l->core->ranks.np; r++) {
        if (was_cut_short(&l->core->ranks.v[r]))
            dt_flight_record_ended(&l->record, r);
    }
}

void dt_last_calls_say(struct dt_last_calls *l)
{
    struct dt_strbuf b = { 0 };
    char *rest = NULL;

    dt_timers_stop(&l->core->timers, DT_TIMER_LAST_CALLS);
    note_ended(l);
    dt_flight_record_words(&l->record, &b);
    for (char *line = b.data ? strtok_r(b.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        dt_say("%s", line);
    dt_strbuf_free(&b);
    dt_flight_record_forget_printed(&l->record);
}

/* While the job is failing, it is not decided yet whether the calls are printed or dropped. */
void dt_last_calls_on_due(struct dt_last_calls *l)
{
    if (l->core->state != DT_JOB_FAILING)
        dt_last_calls_say(l);
}

/* The user is told that a rank is gone and that all ranks start again. It would add nothing to name
 * the calls in which the other ranks learned of it. */
void dt_last_calls_forget(struct dt_last_calls *l)
{
    if (l->record.own)
        dt_last_calls_say(l);
    dt_timers_stop(&l->core->timers, DT_TIMER_LAST_CALLS);
    dt_flight_record_free(&l->record);
}

static bool is_of_interest(const struct dt_last_calls *l, const struct dt_msg_last_calls *m)
{
    return m->generation == l->core->generation && l->core->state != DT_JOB_OVER &&
           m->rank < l->core->ranks.np && l->core->state != DT_JOB_RECOVERING;
}

void dt_last_calls_on_report(struct dt_last_calls *l, const struct dt_hostlink *h,
                             const struct dt_msg_last_calls *m)
{
    if (!is_of_interest(l, m))
        return;
    dt_flight_record_add(&l->record, dt_core_host_name(l->core, h->host), m);
    if (!dt_timers_is_running(&l->core->timers, DT_TIMER_LAST_CALLS))
        dt_timers_set(&l->core->timers, DT_TIMER_LAST_CALLS, WAIT_MS);
}
