/* Which restarts --max-restarts allows, and how long each must wait. The witness counts restarts by
 * the STARTs that agents get. */
#include <inttypes.h>

#include "tests/sim/world.h"

enum { FRUITLESS_MAX = 3, DOUBLINGS_MAX = 4, DELAY_MAX_S = 30, RUN_S = 60 };

/* "three restarts in a row without a newer checkpoint end it. A rank that exits by itself while the
 * job restores for the first time ends it." */
static bool is_allowed(const struct sim_world *w, bool exited)
{
    const struct sim_restarts *r = &w->witness.restarts;
    bool fruitless = r->n > 0 && r->newest <= r->newest_before;

    if (w->s->max_restarts >= 0)
        return r->n < (uint32_t)w->s->max_restarts;
    if (!r->saved && (!r->restoring || exited))
        return false;
    return !(r->met && fruitless && r->fruitless >= FRUITLESS_MAX);
}

bool sim_is_restart_allowed(const struct sim_world *w)
{
    return is_allowed(w, false);
}

void sim_restarts_decided(struct sim_world *w)
{
    struct sim_restarts *r = &w->witness.restarts;

    r->allowed = is_allowed(w, false);
    r->allowed_after_exit = is_allowed(w, true);
    r->newest_at_decision = r->newest;
}

/* "the next ones wait 1, 2, 4, 8 and 16 seconds, and then 30 seconds each time" */
static uint64_t delay_ns(const struct sim_restarts *r)
{
    if (r->fruitless < 2)
        return 0;
    if (r->fruitless - 2 > DOUBLINGS_MAX)
        return DELAY_MAX_S * SIM_S;
    return (UINT64_C(1) << (r->fruitless - 2)) * SIM_S;
}

/* "For a program that does not save with libdtrun, a minute in which all ranks run counts like a
 * checkpoint." */
static void count(struct sim_restarts *r, uint64_t decided_ns)
{
    bool has_run = !r->saved && r->again_ns && decided_ns - r->again_ns >= RUN_S * SIM_S;
    bool progress = has_run || r->n == 0 || r->newest_at_decision > r->newest_before;

    r->again_ns = 0;
    r->fruitless = progress ? 1 : r->fruitless + 1;
    r->barren |= r->fruitless >= FRUITLESS_MAX - 1;
    r->newest_before = r->newest_at_decision;
    r->n++;
}

uint64_t sim_restarts_delay_ns(const struct sim_world *w)
{
    struct sim_restarts next = w->witness.restarts;

    count(&next, w->witness.decided_ns);
    return delay_ns(&next);
}

uint64_t sim_restarts_due_ns(const struct sim_world *w)
{
    if (w->witness.cut_off) /* not a restart: no rank has run yet */
        return 0;
    return w->witness.decided_ns + sim_restarts_delay_ns(w);
}

void sim_restarts_started(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (x->generation == 0 || x->cut_off)
        return;
    if (x->decided_causes == 0)
        sim_broken(w, "ranks start again although nothing has failed");
    if (!sim_oracle_allows(w, true))
        sim_broken(w, "ranks start again after %u restarts, and no more are allowed",
                   x->restarts.n);
    count(&x->restarts, x->decided_ns);
    if (w->now_ns < x->decided_ns + delay_ns(&x->restarts))
        sim_broken(w, "restart %u without progress begins after %" PRIu64 " ms",
                   x->restarts.fruitless, (w->now_ns - x->decided_ns) / SIM_MS);
}
