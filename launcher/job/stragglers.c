/* Ranks that still run although others have ended with 0. They may wait for those for ever: dtrun
 * cannot see it where they do not use the library (where they do, leaving early is a failure at
 * once, see cause.h), so it tells the user, or ends the job when the user has said so. */
#include <stdlib.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"

enum {
    WARN_MS = 60 * 1000,
    AGAIN_MS = 100, /* while others have not begun, or it is being found out who has failed */
};

void dt_job_watch_stragglers(struct dt_job *j)
{
    uint64_t ms =
        j->core.config->exit_grace_s ? (uint64_t)j->core.config->exit_grace_s * 1000 : WARN_MS;

    if (!dt_timers_runs(&j->core.timers, DT_TIMER_STRAGGLERS) &&
        (j->core.config->exit_grace_s || !j->warned))
        dt_timers_set(&j->core.timers, DT_TIMER_STRAGGLERS, ms);
}

static void warn(struct dt_job *j)
{
    struct dt_strbuf b = { 0 };

    if (j->core.ranks.hellos >
        0) /* none of them waits for one that has ended: that would be a failure */
        return;
    j->warned = true;
    dt_strbuf_printf(&b, "a rank exited with 0 %d s ago; exited: ", WARN_MS / 1000);
    dt_ranks_words(&j->core.ranks, false, &b);
    dt_strbuf_puts(&b, "; still running: ");
    dt_ranks_words(&j->core.ranks, true, &b);
    dt_say("%s (--exit-grace SECONDS ends such a job)", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

static void end(struct dt_job *j)
{
    struct dt_strbuf b = { 0 };

    dt_strbuf_printf(&b,
                     "a rank exited with 0 %d s ago (--exit-grace); stopping the ranks that are "
                     "still running: ",
                     j->core.config->exit_grace_s);
    dt_ranks_words(&j->core.ranks, true, &b);
    dt_say("%s", dt_strbuf_text(&b));
    dt_strbuf_free(&b);
    j->outcome.exit_code = DT_EXIT_TIMEOUT;
    dt_outcome_set_reason(&j->outcome,
                          dt_xasprintf("ranks still ran %d s after the first had exited with 0",
                                       j->core.config->exit_grace_s));
    dt_core_event(&j->core, DT_EV_STOP);
}

void dt_job_on_stragglers_late(struct dt_job *j)
{
    if (j->core.state == DT_JOB_STARTING || j->core.state == DT_JOB_FAILING)
        dt_timers_set(&j->core.timers, DT_TIMER_STRAGGLERS, AGAIN_MS);
    else if (j->core.state != DT_JOB_RUNNING || dt_ranks_alive(&j->core.ranks) == 0)
        return;
    else if (j->core.config->exit_grace_s)
        end(j);
    else
        warn(j);
}
