/* Calls that fail by themselves: because ranks make different calls, one of them aborts the
 * communicator, or a time limit of the program is over. The first rank that notices tells its
 * agent, and the agent tells dtrun. dtrun tells all agents once, before they hear of deaths that
 * follow. Ranks may also tell their last calls, which dtrun prints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/dtrun.h"
#include "tests/sim/world.h"

#define OTHER_COMM ((UINT64_C(1) << 32) + 1)

enum { NOTICE_MS = 30, LAST_CALLS_MS = 40, CALL = 100 };

static uint64_t number_of(enum sim_comm comm)
{
    return comm == SIM_WORLD ? 0 : OTHER_COMM;
}

/* ---- ranks and their agent ---- */

/* A call on the other communicator returns an error. Most ranks of a program then do the same: end,
 * go on, or go on without having freed the communicator. */
static void fail_other(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    struct sim_rank *r = sim_acting_process(w, e);
    uint64_t habit = sim_percent(&w->program, 90) ? w->s->seed : sim_below(&w->program, 3);

    if (!r || r->stubborn || r->failed)
        return;
    if (habit % 3 == 0)
        sim_rank_fail(w, a, r, (int)sim_between(&w->program, 1, 3), 0);
    else
        r->careless = a->failed[SIM_OTHER] != DT_ERR_ABORTED && habit % 3 == 1;
}

static void tell_other(struct sim_world *w, struct sim_agent *a, int32_t code)
{
    if (a->phase != SIM_RUNNING || a->failed[SIM_WORLD] || a->failed[SIM_OTHER])
        return;
    a->failed[SIM_OTHER] = code;
    for (uint32_t i = 0; i < a->nranks; i++) {
        if (a->ranks[i].alive)
            sim_plan(w, a, &a->ranks[i], sim_between(&w->program, 1, NOTICE_MS) * SIM_MS,
                     fail_other, 0);
    }
}

void sim_agent_on_abort(struct sim_world *w, struct sim_agent *a, const struct dt_msg_abort *m)
{
    if (m->generation != a->generation)
        return;
    if (m->comm)
        tell_other(w, a, m->code);
    else
        sim_ranks_abort(w, a, m->code);
}

/* What a rank of this host has noticed: calls on comm fail, and rank is to blame. */
static void report(struct sim_world *w, struct sim_agent *a, enum sim_comm comm, uint32_t rank,
                   int32_t code)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m);

    m->failed = (struct dt_msg_failed){ a->generation, number_of(comm), rank, code,
                                        dt_xasprintf("a call of rank %u fails", rank) };
    sim_send(w, a, DT_MSG_FAILED, m);
    if (comm == SIM_WORLD)
        sim_ranks_abort(w, a, code);
    else
        tell_other(w, a, code);
}

static bool may_notice(const struct sim_world *w, const struct sim_agent *a, enum sim_comm comm)
{
    return a->alive && a->phase == SIM_RUNNING && !a->in_doubt && !a->held &&
           w->now_ns >= a->host->frozen_until && !a->failed[SIM_WORLD] && !a->failed[comm];
}

/* ---- last calls ---- */

/* One call that says of which generation it was. */
static struct dt_msg_list list_calls(uint32_t generation, const char *result)
{
    struct dt_msg_last_call *call = dt_xcalloc(1, sizeof *call);

    *call =
        (struct dt_msg_last_call){ .call = CALL,
                                   .what = dt_xasprintf("all-reduce of generation %u.", generation),
                                   .result = dt_xstrdup(result),
                                   .algorithm = dt_xstrdup("-") };
    return (struct dt_msg_list){ call, 1 };
}

void sim_agent_tell_last_calls(struct sim_world *w, struct sim_agent *a, uint32_t rank,
                               uint32_t generation, int32_t code)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m);

    m->last_calls = (struct dt_msg_last_calls){
        .generation = generation,
        .rank = rank,
        .code = code,
        .dump = dt_xstrdup(rank % 3 ? "/tmp/dump" : ""),
        .dump_error = dt_xstrdup(rank % 3 ? "" : "no space"),
        .calls = list_calls(generation, code == DT_ERR_PEER ? "DT_ERR_PEER" : "DT_ERR_MISMATCH"),
    };
    sim_send(w, a, DT_MSG_LAST_CALLS, m);
}

static void tell_last_calls(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    const struct sim_rank *r = sim_acting_process(w, e);

    if (r)
        sim_agent_tell_last_calls(w, a, r->rank, a->generation, a->failed[SIM_WORLD]);
}

void sim_rank_tells_last_calls(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r)
{
    if (sim_percent(&w->program, 70)) /* some never do, and others may have ended by then */
        sim_plan(w, a, r, sim_between(&w->program, 0, LAST_CALLS_MS) * SIM_MS, tell_last_calls, 0);
}

/* ---- ranks that notice a failed call ---- */

struct notice {
    enum sim_comm comm;
    uint32_t rank;
    int32_t code;
};

static uint64_t pack(struct notice n)
{
    return (uint64_t)n.rank << 32 | (uint64_t)n.comm << 8 | (uint8_t)-n.code;
}

static struct notice unpack(uint64_t n)
{
    return (struct notice){ (enum sim_comm)(n >> 8 & 1), (uint32_t)(n >> 32), -(int32_t)(n & 255) };
}

static void notice(struct sim_world *w, struct sim_event *e)
{
    struct notice n = unpack(e->n);
    struct sim_agent *a = e->who;

    if (a->generation == e->epoch && may_notice(w, a, n.comm))
        report(w, a, n.comm, n.rank, n.code);
}

void sim_call_fails(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r,
                    int32_t code, enum sim_comm comm)
{
    struct notice n = { comm, r->rank, code };

    if (!r->next_ns || r->stubborn || !may_notice(w, a, comm))
        return;
    if (comm == SIM_WORLD)
        w->stuck_generation = a->generation;
    report(w, a, comm, r->rank, code);
    for (struct sim_agent *other = w->agents; other; other = other->next) {
        if (other->generation == a->generation && other != a && sim_percent(&w->program, 30))
            sim_later(w, sim_between(&w->program, 1, NOTICE_MS) * SIM_MS,
                      (struct sim_event){
                          .act = notice, .who = other, .n = pack(n), .epoch = a->generation });
    }
}

/* ---- what dtrun must do ---- */

void sim_check_failed(struct sim_world *w, const struct dt_msg_failed *m)
{
    struct sim_witness *x = &w->witness;
    struct sim_failed_call *f = &x->failed_call;

    *f = (struct sim_failed_call){
        .number = f->number + 1,
        .pending = true,
        .counts = m->generation == x->generation && !x->decided && !x->norders && !x->ncauses,
        .comm = m->comm,
        .rank = m->rank,
        .code = m->code,
    };
    snprintf(f->text, sizeof f->text, "%s", m->text);
    x->world_failed |= f->counts && !m->comm && m->code != DT_ERR_ABORTED;
    x->other_failed |= f->counts && m->comm && m->code != DT_ERR_ABORTED;
}

bool sim_check_passed_on(struct sim_world *w, struct sim_conn *c, const struct dt_msg_abort *m)
{
    const struct sim_failed_call *f = &w->witness.failed_call;

    if (!f->pending) {
        if (m->comm || (m->code != DT_ERR_PEER && m->code != DT_ERR_TIMEOUT))
            sim_broken(w, "dtrun sends ABORT with %d, which no agent has reported", m->code);
        return false;
    }
    if (!f->counts)
        sim_broken(w, "dtrun passes on a failed call that no longer matters");
    if (m->comm != f->comm || m->rank != f->rank || m->code != f->code ||
        strcmp(m->text, f->text) != 0)
        sim_broken(w, "dtrun passes on another failed call than was reported");
    if (c->aborted == f->number)
        sim_broken(w, "%s is told twice of a failed call", c->host->name);
    c->aborted = f->number;
    return true;
}

void sim_check_all_passed_on(struct sim_world *w)
{
    struct sim_failed_call *f = &w->witness.failed_call;

    for (uint32_t i = 0; i < w->s->hosts && f->counts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (c && c->open && c->started == w->witness.generation && c->aborted != f->number)
            sim_broken(w, "%s is not told of a failed call", c->host->name);
    }
    f->pending = false;
}

bool sim_are_errors_ignored(const struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;

    return x->world_failed || (x->other_failed && x->ignored);
}

/* ---- last calls that dtrun prints ---- */

void sim_check_last_calls_told(struct sim_world *w, const struct dt_msg_last_calls *m)
{
    struct sim_witness *x = &w->witness;

    if (m->generation != x->generation)
        return;
    x->told_calls = true;
    x->owes_calls |= m->code != DT_ERR_PEER && !x->decided && !x->norders;
}

/* Those of one generation, before the next one begins. */
void sim_check_last_calls_said(struct sim_world *w, const char *line)
{
    struct sim_witness *x = &w->witness;
    const char *of = strstr(line, "all-reduce of generation ");
    unsigned generation = 0;

    if (!of)
        return;
    sscanf(of, "all-reduce of generation %u", &generation);
    if (generation != x->generation || !x->told_calls)
        sim_broken(w, "dtrun prints last calls of generation %u in %u", generation, x->generation);
    x->owes_calls = false;
}

void sim_check_last_calls_complete(struct sim_world *w)
{
    if (w->witness.owes_calls)
        sim_broken(w, "dtrun does not print the last calls of ranks whose calls have failed");
}
