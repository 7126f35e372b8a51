/* MPI programs. Each rank calls MPI_Init and MPI_Finalize, of which its agent sends MPI_STATE. An
 * agent sends FENCE when all its ranks are in a barrier, and dtrun answers all hosts with FENCED
 * once all have sent it. FENCED brings the data of every host once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "tests/sim/world.h"

enum { LINE_MAX = 20 * 1024, AGAIN_MS = 50 };

/* What a host publishes with its fence of this number: a line, which may need several frames. */
static size_t write_line(char line[LINE_MAX], uint32_t generation, uint32_t node, uint32_t fence)
{
    size_t n = (node + fence) % 4 ? 40 : LINE_MAX;

    memset(line, 'x', n);
    line[snprintf(line, n, "%u %u %u ", generation, node, fence)] = 'x';
    line[n - 1] = '\n';
    return n;
}

/* ---- MPI_Init and MPI_Finalize ---- */

void sim_rank_tells_mpi_state(struct sim_world *w, struct sim_agent *a, struct sim_rank *r,
                              bool inside)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m);

    r->in_mpi = inside;
    m->mpi_state = (struct dt_msg_mpi_state){ a->generation, r->rank, inside };
    sim_send(w, a, DT_MSG_MPI_STATE, m);
}

static void init(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);

    if (r && !r->stubborn)
        sim_rank_tells_mpi_state(w, e->who, r, true);
}

/* Some ranks call MPI_Init late, so that another one may have exited. */
void sim_rank_plans_mpi(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r)
{
    if (w->s->fences)
        sim_plan(w, a, r,
                 sim_percent(&w->program, 20) ? sim_below(&w->program, w->s->work_ns)
                                              : sim_between(&w->program, 5, 100) * SIM_MS,
                 init, 0);
}

/* ---- barriers ---- */

static bool has_several_hosts(const struct sim_agent *a)
{
    return a->nodes > 1;
}

bool sim_agent_awaits_fence(const struct sim_world *w, const struct sim_agent *a)
{
    return has_several_hosts(a) && a->fenced < w->s->fences;
}

static void enter(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    bool late = a->in_doubt || w->now_ns < a->host->frozen_until;
    union dt_msg *m;
    char *line;

    if (!a->alive || a->generation != e->epoch || a->phase != SIM_RUNNING)
        return;
    for (uint32_t i = 0; i < a->nranks; i++) {
        if (!a->ranks[i].alive || a->ranks[i].stubborn) /* it never comes to the barrier */
            return;
        late |= a->ranks[i].stopped || !a->ranks[i].in_mpi;
    }
    if (late) {
        if (a->host->frozen_until != UINT64_MAX)
            sim_later(w, AGAIN_MS * SIM_MS, *e);
        return;
    }
    m = dt_xcalloc(1, sizeof *m + LINE_MAX);
    line = (char *)(m + 1);
    a->fences++;
    m->fence = (struct dt_msg_fence){
        a->generation, { (uint8_t *)line, write_line(line, a->generation, a->node, a->fences) }
    };
    sim_send(w, a, DT_MSG_FENCE, m);
}

static void plan_next(struct sim_world *w, struct sim_agent *a)
{
    if (sim_agent_awaits_fence(w, a))
        sim_later(w, sim_between(&w->program, SIM_MS, w->s->work_ns / (w->s->fences + 1)),
                  (struct sim_event){ .act = enter, .who = a, .epoch = a->generation });
}

void sim_fences_begin(struct sim_world *w, struct sim_agent *a)
{
    a->fences = a->fenced = 0;
    plan_next(w, a);
}

void sim_agent_on_fenced(struct sim_world *w, struct sim_agent *a, const struct dt_msg_fenced *m)
{
    if (m->generation != a->generation)
        return;
    if (++a->fenced != a->fences)
        sim_broken(w, "%s gets FENCED, and its ranks are in no barrier", a->host->name);
    plan_next(w, a);
}

/* ---- what dtrun must do ---- */

/* The number of fences that all hosts of the generation have sent. */
static uint32_t count_complete(const struct sim_world *w)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *h = &w->hosts[i];

        if (h->generation == w->witness.generation && h->fences < least)
            least = h->fences;
    }
    return least;
}

void sim_check_fence_told(struct sim_world *w, struct sim_conn *c, const struct dt_msg_fence *m)
{
    c->host->fences += m->generation == w->witness.generation;
}

/* data must consist of one line of each host. */
static bool has_all_lines(const struct sim_world *w, const struct dt_msg_blob *data, uint32_t fence)
{
    const char *p = (const char *)data->p, *end = p + data->n;
    uint64_t seen = 0;
    char *line = dt_xcalloc(LINE_MAX, 1);

    while (p < end) {
        uint32_t node = (uint32_t)strtoul(strchr(p, ' '), NULL, 10);
        size_t n = write_line(line, w->witness.generation, node, fence);

        if ((size_t)(end - p) < n || memcmp(p, line, n) != 0 || (seen >> node & 1))
            break;
        seen |= UINT64_C(1) << node;
        p += n;
    }
    free(line);
    return p == end && seen == (UINT64_C(1) << w->witness.nodes) - 1;
}

void sim_check_fenced(struct sim_world *w, struct sim_conn *c, const struct dt_msg_fenced *m)
{
    c->fenced++;
    if (m->generation != w->witness.generation || !c->started)
        sim_broken(w, "FENCED of generation %u goes to %s, where none of its ranks runs",
                   m->generation, c->host->name);
    else if (c->fenced > count_complete(w))
        sim_broken(w, "%s is told that fence %u is over, and not all hosts have sent it",
                   c->host->name, c->fenced);
    else if (!has_all_lines(w, &m->data, c->fenced))
        sim_broken(w, "%s does not get every host's data with fence %u once", c->host->name,
                   c->fenced);
}

void sim_check_fence_passed_on(struct sim_world *w)
{
    uint32_t complete = count_complete(w);

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (c && c->open && c->started == w->witness.generation && c->fenced != complete)
            sim_broken(w, "%s is told that %u fences are over, not %u", c->host->name, c->fenced,
                       complete);
    }
}
