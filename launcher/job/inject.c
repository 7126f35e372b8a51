/* --inject on this side: which faults go to which host, and which have struck. */
#include <inttypes.h>
#include <string.h>

#include "launcher/base/inject.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"

static struct dt_inject fault_of(const struct dt_job *j, uint32_t i)
{
    struct dt_inject fault;

    dt_inject_parse(&fault, j->config->inject.v[i], NULL);
    return fault;
}

static bool is_due(const struct dt_job *j, uint32_t i, const struct dt_inject *f)
{
    return !j->struck[i] && (f->restart < 0 || f->restart == j->restart.restarts);
}

/* A fault strikes once in a job, not once in each generation. */
void dt_job_select_faults(const struct dt_job *j, const struct dt_plan_node *node,
                          struct dt_strs *faults)
{
    for (uint32_t i = 0; i < j->config->inject.n; i++) {
        struct dt_inject f = fault_of(j, i);

        if (is_due(j, i, &f) && dt_inject_on(&f, (uint32_t)node->node_rank, &node->ranks))
            dt_xstrs_add(faults, j->config->inject.v[i]);
    }
}

void dt_job_on_struck(struct dt_job *j, const struct dt_msg_struck *m)
{
    for (uint32_t i = 0; i < j->config->inject.n; i++)
        j->struck[i] |= strcmp(j->config->inject.v[i], m->fault) == 0;
}

/* The agent that such a fault strikes sends nothing more: the loss of the host is taken for it. */
void dt_job_host_struck(struct dt_job *j, const struct dt_plan_node *node)
{
    for (uint32_t i = 0; i < j->config->inject.n; i++) {
        struct dt_inject f = fault_of(j, i);

        if (!is_due(j, i, &f) || !dt_inject_takes_all_ranks(&f) ||
            !dt_inject_on(&f, (uint32_t)node->node_rank, &node->ranks))
            continue;
        j->struck[i] = true;
        j->links.v[node->host]->injected = true;
        j->lost[node->host] |= f.kind == DT_INJECT_HOST;
    }
}

/* The rank whose step the fault waits for. */
static int64_t rank_of(const struct dt_job *j, const struct dt_inject *f)
{
    if (f->rank >= 0)
        return f->rank;
    return (size_t)f->node < j->plan.nnodes ? (int64_t)j->plan.nodes[f->node].ranks.v[0] : -1;
}

static void say_unstruck(const struct dt_job *j, const char *text, const struct dt_inject *f)
{
    int64_t rank = f->step < 0 ? -1 : rank_of(j, f);

    if (f->restart > j->restart.restarts)
        dt_say("--inject %s did not strike: the job had no restart %" PRId64, text, f->restart);
    else if (rank < 0 || (f->restart >= 0 && f->restart < j->restart.restarts))
        dt_say("--inject %s did not strike: the job was over before", text);
    else if (j->ranks.v[rank].end.step < 0)
        dt_say("--inject %s did not strike: rank %" PRId64 " took no step (dt_step)", text, rank);
    else
        dt_say("--inject %s did not strike: the last step of rank %" PRId64 " was %" PRId64, text,
               rank, j->ranks.v[rank].end.step);
}

void dt_job_say_unstruck(const struct dt_job *j)
{
    for (uint32_t i = 0; i < j->config->inject.n; i++) {
        struct dt_inject f = fault_of(j, i);

        if (!j->struck[i])
            say_unstruck(j, j->config->inject.v[i], &f);
    }
}
