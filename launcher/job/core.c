/* What all parts of the engine need of it: events, and a look at what has come about. */
#include "launcher/job/engine.h"

void dt_job_event(struct dt_job *j, enum dt_job_event event)
{
    struct dt_job_step step = dt_job_fsm(j->state, event);

    j->state = step.next;
    j->act(j, step.action);
}

const char *dt_job_host_name(const struct dt_job *j, size_t host)
{
    return j->config->hosts->v[host].name;
}

void dt_job_check(struct dt_job *j)
{
    if (j->state == DT_JOB_ENDING) {
        if (j->links.open == 0 && (j->cut || !j->ops->output_awaits(j->ops->arg)))
            dt_job_event(j, DT_EV_CLOSED);
    } else if (dt_hostlinks_are_idle(&j->links)) {
        dt_job_event(j, DT_EV_IDLE);
    }
}

const struct dt_death *dt_job_cause(const struct dt_job *j)
{
    return dt_deaths_cause(&j->deaths, j->ranks.linked_alive > 0);
}

void dt_job_fail(struct dt_job *j, int exit_code, uint32_t grace)
{
    j->outcome.exit_code = exit_code;
    j->end_grace_ms = grace;
    dt_job_event(j, DT_EV_FAILED);
}
