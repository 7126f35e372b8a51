#include "launcher/job/state/injections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/inject.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"

void dt_injections_init(struct dt_injections *in, const struct dt_strs *faults)
{
    *in = (struct dt_injections){ .faults = faults,
                                  .triggered = dt_xcalloc(faults->n, sizeof *in->triggered) };
}

void dt_injections_begin(struct dt_injections *in, uint32_t restart)
{
    in->restart = restart;
}

static struct dt_inject fault_of(const struct dt_injections *in, uint32_t i)
{
    struct dt_inject fault;

    dt_inject_parse(&fault, in->faults->v[i], NULL);
    return fault;
}

static bool is_due(const struct dt_injections *in, uint32_t i, const struct dt_inject *f)
{
    return !in->triggered[i] && (f->restart < 0 || f->restart == in->restart);
}

void dt_injections_select(const struct dt_injections *in, const struct dt_plan_node *node,
                          struct dt_strs *faults)
{
    for (uint32_t i = 0; i < in->faults->n; i++) {
        struct dt_inject f = fault_of(in, i);

        if (is_due(in, i, &f) && dt_inject_concerns(&f, (uint32_t)node->node_rank, &node->ranks))
            dt_xstrs_add(faults, in->faults->v[i]);
    }
}

void dt_injections_on_triggered(struct dt_injections *in, const char *fault)
{
    for (uint32_t i = 0; i < in->faults->n; i++)
        in->triggered[i] |= strcmp(in->faults->v[i], fault) == 0;
}

enum dt_injected_loss dt_injections_lose_host(struct dt_injections *in,
                                              const struct dt_plan_node *node)
{
    enum dt_injected_loss loss = DT_LOSS_NOT_INJECTED;

    for (uint32_t i = 0; i < in->faults->n; i++) {
        struct dt_inject f = fault_of(in, i);

        if (!is_due(in, i, &f) || !dt_inject_takes_all_ranks(&f) ||
            !dt_inject_concerns(&f, (uint32_t)node->node_rank, &node->ranks))
            continue;
        in->triggered[i] = true;
        if (loss != DT_LOSS_OF_HOST)
            loss = f.kind == DT_INJECT_HOST ? DT_LOSS_OF_HOST : DT_LOSS_OF_AGENT;
    }
    return loss;
}

/* The rank whose step the fault waits for. */
static int64_t rank_of(const struct dt_plan *plan, const struct dt_inject *f)
{
    if (f->rank >= 0)
        return f->rank;
    return (size_t)f->node < plan->nnodes ? (int64_t)plan->nodes[f->node].ranks.v[0] : -1;
}

static void say_one(const struct dt_injections *in, const char *text, const struct dt_inject *f,
                    const struct dt_plan *plan, const struct dt_ranks *ranks)
{
    int64_t rank = f->step < 0 ? -1 : rank_of(plan, f);

    if (f->restart > in->restart)
        dt_say("--inject %s did not happen: the job had no restart %" PRId64, text, f->restart);
    else if (rank < 0 || (f->restart >= 0 && f->restart < in->restart))
        dt_say("--inject %s did not happen: the job was over before", text);
    else if (ranks->v[rank].end.step < 0)
        dt_say("--inject %s did not happen: rank %" PRId64 " took no step (dt_step)", text, rank);
    else
        dt_say("--inject %s did not happen: the last step of rank %" PRId64 " was %" PRId64, text,
               rank, ranks->v[rank].end.step);
}

void dt_injections_say_untriggered(const struct dt_injections *in, const struct dt_plan *plan,
                                   const struct dt_ranks *ranks)
{
    for (uint32_t i = 0; i < in->faults->n; i++) {
        struct dt_inject f = fault_of(in, i);

        if (!in->triggered[i])
            say_one(in, in->faults->v[i], &f, plan, ranks);
    }
}

void dt_injections_free(struct dt_injections *in)
{
    free(in->triggered);
}
