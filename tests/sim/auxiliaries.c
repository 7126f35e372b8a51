/* The auxiliaries of a job, a scheduler and servers: how they end, and when the engine has to end
 * them. Once dtrun knows that all ranks have exited with 0, it no longer matters how auxiliaries
 * end, or whether their hosts are lost. */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/sim/world.h"

enum { END_MS = 5000, LATE_MS = 150, LONGEST_MS = 400, ANSWERS_MS = 11000 };

bool sim_is_auxiliary(const struct sim_world *w, uint32_t number)
{
    return number >= w->s->np;
}

/* ---- how they end ---- */

static void end(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);

    if (r && !r->stubborn)
        sim_agent_reap(w, e->who, r, sim_percent(&w->program, 15) ? 1 : 0, 0);
}

/* A few end with 0 while ranks run, because no rank needs them any more. */
void sim_auxiliary_begins(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r)
{
    if (sim_percent(&w->program, 10))
        sim_plan(w, a, r, sim_below(&w->program, w->s->work_ns), end, 0);
}

/* Most auxiliaries that learn from the ranks that all is done end soon. Some do not. */
static void release(struct sim_world *w, struct sim_agent *a)
{
    for (uint32_t i = a->nranks; i < a->n; i++) {
        if (a->ranks[i].alive && sim_percent(&w->program, 80))
            sim_plan(w, a, &a->ranks[i], sim_between(&w->program, 1, LONGEST_MS) * SIM_MS, end, 0);
    }
}

void sim_auxiliaries_rank_ended(struct sim_world *w, uint32_t generation)
{
    if (w->well_generation != generation)
        w->well = 0;
    w->well_generation = generation;
    if (++w->well < w->s->np)
        return;
    for (struct sim_agent *a = w->agents; a; a = a->next) {
        if (a->alive && a->generation == generation && a->phase == SIM_RUNNING)
            release(w, a);
    }
}

/* ---- when dtrun must end them ---- */

bool sim_are_ranks_through(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return w->s->servers && x->generation > 0 && !x->decided && x->ended_well == w->s->np;
}

/* Whether nothing but the end of the ranks can end the job. */
static bool is_calm(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return sim_are_ranks_through(w) && x->norders == 0 && x->ncauses == 0 && x->running == x->nodes;
}

static bool is_any_host_busy(const struct sim_world *w)
{
    for (const struct sim_conn *c = w->conns; c; c = c->next) {
        if (c->open && c->started == w->witness.generation)
            return true;
    }
    return false;
}

/* When all ranks had ended, had dtrun not been stopped since then. */
static uint64_t ended_ns(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return x->through_ns + x->suspended_ns - x->through_suspended_ns;
}

static void expect_stop(struct sim_world *w, struct sim_event *e)
{
    const struct sim_witness *x = &w->witness;
    uint64_t asked_ns = x->lost_ns > w->standing_until ? x->lost_ns : w->standing_until;
    uint64_t answered_ns = asked_ns + (ANSWERS_MS + LATE_MS) * SIM_MS;
    uint64_t due_ns = ended_ns(w) + (END_MS + LATE_MS) * SIM_MS;

    /* dtrun first asks the other agents what they know of a loss, and may stand still meanwhile. */
    if (x->lost_ns >= x->through_ns && answered_ns > due_ns)
        due_ns = answered_ns;
    if (due_ns > w->now_ns) {
        sim_later(w, due_ns - w->now_ns,
                  (struct sim_event){ .act = expect_stop, .n = e->n, .for_engine = true });
        return;
    }
    if (x->generation == e->n && !x->pardoned && !x->stopped_auxiliaries && is_calm(w) &&
        is_any_host_busy(w))
        sim_broken(w, "auxiliaries still run 5 s after all ranks have exited with 0");
}

void sim_auxiliaries_pardon(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;
    size_t n = 0;

    if (!sim_are_ranks_through(w))
        return;
    for (size_t i = 0; i < x->ncauses; i++) {
        if (!x->causes[i].auxiliary && (x->causes[i].kind != SIM_BY_LEAVING || x->lost_peer))
            x->causes[n++] = x->causes[i];
    }
    x->pardoned = n < x->ncauses;
    x->ncauses = n;
    x->through_ns = w->now_ns;
    x->through_suspended_ns = x->suspended_ns;
    sim_later(w, (END_MS + LATE_MS) * SIM_MS,
              (struct sim_event){ .act = expect_stop, .n = x->generation, .for_engine = true });
}

bool sim_check_auxiliaries_stopped(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (!is_calm(w))
        return false;
    if (!x->limit_over && w->now_ns - ended_ns(w) < END_MS * SIM_MS)
        sim_broken(w, "auxiliaries are stopped %" PRIu64 " ms after all ranks have exited with 0",
                   (w->now_ns - ended_ns(w)) / SIM_MS);
    x->stopped_auxiliaries = true;
    return true;
}
