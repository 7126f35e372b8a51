/* Whether the job has failed, and how it fails for good. Several parts of the engine need both. */
#include "launcher/job/engine.h"

const struct dt_death *dt_job_cause(const struct dt_job *j)
{
    return dt_deaths_cause(&j->deaths, j->core.ranks.linked_alive > 0);
}

void dt_job_fail(struct dt_job *j, int exit_code, uint32_t grace_ms)
{
    j->outcome.exit_code = exit_code;
    j->end_grace_ms = grace_ms;
    dt_core_event(&j->core, DT_EV_FAILED);
}
