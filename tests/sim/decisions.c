/* When dtrun decides what a failure means: after all agents have answered which deaths they know
 * of, and later if another death may explain the first one. It does not wait without a reason. */
#include <inttypes.h>

#include "tests/sim/world.h"

enum { ANSWER_MS = 10000, EXPLAIN_MS = 1000, LATE_MS = 250 };

static bool has_ranks(const struct sim_world *w, const struct sim_conn *c)
{
    return c && c->open && c->started && c->started == w->witness.generation;
}

void sim_check_query(struct sim_world *w, struct sim_conn *c, const struct dt_msg_query *m)
{
    if (c->queried >= m->id)
        sim_broken(w, "%s is asked question %u again", c->host->name, m->id);
    if (c->answered == c->queried && !w->pausing) /* one before a pause puts off no decision */
        c->awaited_ns = w->now_ns;
    c->queried = m->id;
    c->queried_ns = w->now_ns;
}

/* Whether the failure is a consequence of another one, or no failure at all if all ranks end. */
static bool is_unsure(const struct sim_cause *c)
{
    return c->auxiliary || c->kind == SIM_BY_PEER || c->kind == SIM_BY_LEAVING;
}

/* Nothing but failures that are sure can have begun to end this generation. */
static bool is_sure(const struct sim_witness *x)
{
    for (size_t i = 0; i < x->ncauses; i++) {
        if (is_unsure(&x->causes[i]) || x->causes[i].kind == SIM_BY_HANG ||
            x->causes[i].kind == SIM_BY_REFUSAL)
            return false;
    }
    return x->ncauses > 0;
}

static bool are_all_unsure(const struct sim_witness *x)
{
    for (size_t i = 0; i < x->decided_causes; i++) {
        if (!is_unsure(&x->causes[i]))
            return false;
    }
    return x->decided_causes > 0;
}

/* Whether a rank is about to end because a call of it has returned DT_ERR_PEER. */
static bool is_any_leaving(const struct sim_world *w)
{
    for (uint32_t r = 0; r < w->s->np; r++) {
        if (w->known[r].leaving && !w->known[r].ended)
            return true;
    }
    return false;
}

/* dtrun has decided because of failures. */
void sim_check_decided(struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;
    uint64_t answered_ns = 0;
    bool any = false, late = false, wait;

    if (x->norders || x->cut_off || w->pausing || x->graceful || sim_has_refusal(x) ||
        x->decided_causes == 0)
        return;
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (!has_ranks(w, c))
            continue;
        any = true;
        late |= c->answered != c->queried;
        if (c->answered != c->queried && w->now_ns - c->awaited_ns < ANSWER_MS * SIM_MS)
            sim_broken(w, "dtrun decides although %s has not answered", c->host->name);
        if (c->answered_ns > answered_ns)
            answered_ns = c->answered_ns;
    }
    wait = are_all_unsure(x) || (is_any_leaving(w) && !sim_oracle_allows(w, true));
    if (late || w->standing_until >= answered_ns) /* its time for answers may be over */
        return;
    if (any && wait && w->now_ns - answered_ns < EXPLAIN_MS * SIM_MS)
        sim_broken(w, "dtrun decides %" PRIu64 " ms after the last answer",
                   (w->now_ns - answered_ns) / SIM_MS);
}

static bool have_all_answered(const struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (has_ranks(w, c) && c->answered != c->queried)
            return false;
    }
    return true;
}

static void expect_decision(struct sim_world *w, struct sim_event *e)
{
    const struct sim_witness *x = &w->witness;
    uint64_t acts_ns = w->standing_until + LATE_MS * SIM_MS;

    if (w->now_ns < acts_ns)
        sim_later(w, acts_ns - w->now_ns, *e);
    else if (x->generation == e->n && !x->decided && !x->norders && !x->cut_off && is_sure(x) &&
             have_all_answered(w) && !is_any_leaving(w) && !w->pausing && !w->ended)
        sim_broken(w, "dtrun does not decide, and all agents have answered");
}

void sim_check_answer(struct sim_world *w, struct sim_conn *c, const struct dt_msg_answer *m)
{
    if (m->id != c->queried)
        return;
    c->answered = m->id;
    c->answered_ns = w->now_ns;
    for (uint32_t i = 0; i < m->leaving.n; i++)
        w->known[m->leaving.v[i]].leaving |= c->started == w->witness.generation;
    /* A batch system's signal may explain the death. */
    if (is_sure(&w->witness) && have_all_answered(w) && w->s->max_restarts > 0 && !w->s->batch)
        sim_later(w, LATE_MS * SIM_MS,
                  (struct sim_event){
                      .act = expect_decision, .n = w->witness.generation, .for_engine = true });
}
