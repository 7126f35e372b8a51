#include "launcher/job/core/core.h"

#include <stdlib.h>
#include <unistd.h>

#include "launcher/hosts/duplicate_hosts.h"

void dt_core_init(struct dt_core *c, const struct dt_job_config *config,
                  const struct dt_job_ops *ops,
                  void (*act)(struct dt_core *c, enum dt_job_action action))
{
    *c = (struct dt_core){ .config = config, .ops = ops, .act = act };
    dt_timers_init(&c->timers, ops);
    dt_plan_copy(&c->plan, config->plan);
    dt_ranks_init(&c->ranks, (uint32_t)config->plan->np, (uint32_t)config->plan->nprocs);
    dt_hostlinks_init(&c->links, config->hosts, config->fanout, ops);
}

void dt_core_free(struct dt_core *c)
{
    dt_hostlinks_free(&c->links);
    dt_ranks_free(&c->ranks);
    dt_plan_free(&c->plan);
    dt_outcome_free(&c->outcome);
}

void dt_core_event(struct dt_core *c, enum dt_job_event event)
{
    struct dt_job_step step = dt_job_fsm(c->state, event);

    c->state = step.next;
    c->act(c, step.action);
}

void dt_core_begin_generation(struct dt_core *c)
{
    c->generation++;
    c->all_started = false;
    dt_ranks_reset(&c->ranks);
}

void dt_core_end(struct dt_core *c, enum dt_job_event event, int exit_code, char *reason)
{
    c->outcome.exit_code = exit_code;
    dt_outcome_set_reason(&c->outcome, reason);
    dt_core_event(c, event);
}

unsigned dt_core_stream(int fd)
{
    return fd == STDERR_FILENO ? 2 : 1;
}

unsigned dt_core_late_streams(const struct dt_core *c, unsigned streams, uint64_t ms,
                              const char **what)
{
    unsigned late = 0;

    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        unsigned stream = dt_core_stream(fd) & streams;
        const char *words = stream ? c->ops->output_awaits(c->ops->arg, fd, ms) : NULL;

        if (words) {
            late |= stream;
            *what = words;
        }
    }
    return late;
}

void dt_core_check_idle(struct dt_core *c)
{
    const char *what;

    if (c->state == DT_JOB_ENDING) {
        if (c->links.open == 0 && !dt_core_late_streams(c, ~c->left, 0, &what))
            dt_core_event(c, DT_EV_CLOSED);
    } else if (dt_hostlinks_are_idle(&c->links)) {
        dt_core_event(c, DT_EV_IDLE);
    }
}

uint64_t dt_core_now(const struct dt_core *c)
{
    return dt_timers_now_ns(&c->timers);
}

const char *dt_core_host_name(const struct dt_core *c, size_t host)
{
    return c->config->hosts->v[host].name;
}

static const char *identity_of(const void *arg, size_t node)
{
    const struct dt_core *c = arg;

    return c->links.v[c->plan.nodes[node].host]->identity;
}

bool dt_core_find_duplicate_hosts(const struct dt_core *c, size_t *one, size_t *other)
{
    size_t *first = dt_duplicate_hosts_find(c->plan.nnodes, identity_of, c);
    size_t found = 0;

    while (found < c->plan.nnodes && first[found] == found)
        found++;
    if (found < c->plan.nnodes) {
        *one = c->plan.nodes[first[found]].host;
        *other = c->plan.nodes[found].host;
    }
    free(first);
    return found < c->plan.nnodes;
}

void dt_core_query(struct dt_core *c)
{
    for (uint32_t r = 0; r < c->ranks.np; r++)
        c->ranks.v[r].leaving = false;
    dt_hostlinks_query(&c->links);
}

void dt_core_on_answer(struct dt_core *c, struct dt_hostlink *h, const struct dt_msg_answer *m)
{
    if (!dt_hostlinks_answer(&c->links, h, m->id))
        return;
    for (uint32_t i = 0; i < m->leaving.n; i++) {
        if (m->leaving.v[i] < c->ranks.np)
            c->ranks.v[m->leaving.v[i]].leaving = true;
    }
}
