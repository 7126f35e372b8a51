/* Whether the job has failed. Several parts of the engine need it. */
#include "launcher/job/engine.h"

const struct dt_death *dt_job_cause(const struct dt_job *j)
{
    return dt_deaths_cause(&j->deaths, j->core.ranks.linked_alive > 0);
}
