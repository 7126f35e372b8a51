/* The program: ranks that find each other (if they are linked), work, save checkpoints, print and
 * exit. */
#include <signal.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/dtrun.h"
#include "tests/sim/world.h"

enum { LINE = 32, STEP_MS = 100, FLOOD = 300 * 1024, AGAIN_MS = 50 };

void sim_stream_bytes(char *out, uint64_t from, size_t n, uint32_t generation, uint32_t rank,
                      int fd)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdef";
    uint64_t whose = generation * UINT64_C(1000003) + rank * 2 + (unsigned)fd;

    for (size_t i = 0, len; i < n; i += len) {
        uint64_t line = (from + i) / LINE, column = (from + i) % LINE;
        uint64_t mixed = (line + whose) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
        size_t rest = LINE - column;

        len = rest < n - i ? rest : n - i;
        memcpy(out + i, letters + mixed % 26 + column, len);
        if (len == rest)
            out[i + len - 1] = '\n';
    }
}

bool sim_is_line_unfinished(uint64_t bytes)
{
    return bytes % LINE != 0;
}

int64_t sim_rank_step(const struct sim_world *w, const struct sim_rank *r)
{
    return r->next_ns && w->now_ns >= r->works_ns
               ? (int64_t)((w->now_ns - r->began_ns) / (STEP_MS * SIM_MS))
               : -1;
}

struct sim_rank *sim_rank_find(struct sim_world *w, uint32_t rank, struct sim_agent **agent)
{
    for (struct sim_agent *a = w->agents; a; a = a->next) {
        for (uint32_t i = 0; a->generation == w->witness.generation && i < a->n; i++) {
            *agent = a;
            if (a->ranks[i].rank == rank && a->ranks[i].alive)
                return &a->ranks[i];
        }
    }
    return NULL;
}

/* ---- what a process does next ---- */

void sim_plan(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r, uint64_t ns,
              sim_action_f act, int what)
{
    sim_later(w, ns,
              (struct sim_event){ .act = act,
                                  .who = a,
                                  .n = (uint64_t)(r - a->ranks) << 32 | (uint32_t)what,
                                  .epoch = (uint64_t)a->generation << 32 | r->life });
}

struct sim_rank *sim_acting_process(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    struct sim_rank *r = &a->ranks[e->n >> 32];

    if (!a->alive || a->generation != e->epoch >> 32 || !r->alive || r->life != (uint32_t)e->epoch)
        return NULL;
    if (w->now_ns >= a->host->frozen_until && !a->in_doubt && !r->stopped)
        return r;
    if (a->host->frozen_until == UINT64_MAX)
        return NULL;
    e->at_ns =
        w->now_ns < a->host->frozen_until ? a->host->frozen_until : w->now_ns + AGAIN_MS * SIM_MS;
    sim_queue_put(&w->queue, *e);
    return NULL;
}

static int what_of(const struct sim_event *e)
{
    return (int)(uint32_t)e->n;
}

static void print(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);

    if (!r)
        return;
    sim_agent_print(w, e->who, r, (what_of(e) & 1) + 1,
                    w->s->floods ? FLOOD : sim_between(&w->program, 1, 100));
}

static void plan_output(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r)
{
    for (uint32_t i = 0; i < w->s->lines; i++)
        sim_plan(w, a, r, sim_below(&w->program, w->s->work_ns), print,
                 (int)sim_below(&w->program, 2));
}

/* Linked ranks that wait for a rank which has died or hangs never reach dt_finalize. Those of MPI
 * stay in MPI_Init or MPI_Finalize if a rank has left. */
static void finish(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    struct sim_rank *r = sim_acting_process(w, e);

    if (!r || r->stubborn || w->left_generation == a->generation ||
        (w->s->linked && w->stuck_generation == a->generation))
        return;
    if (sim_rank_awaits_stdin(w, a, r) || sim_agent_awaits_fence(w, a) ||
        (w->s->fences && !r->in_mpi)) {
        sim_plan(w, a, r, AGAIN_MS * SIM_MS, finish, 0);
        return;
    }
    if (w->s->fences)
        sim_rank_tells_mpi_state(w, a, r, false);
    sim_agent_reap(w, a, r, 0, 0);
}

static void say_hello(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    const struct sim_rank *r = sim_acting_process(w, e);
    union dt_msg *m;

    if (!r || r->stubborn)
        return;
    m = dt_xcalloc(1, sizeof *m);
    m->rank_hello = (struct dt_msg_rank_hello){ a->generation, r->rank, 50000 };
    sim_send(w, a, DT_MSG_RANK_HELLO, m);
}

void sim_ranks_begin(struct sim_world *w, struct sim_agent *a)
{
    sim_fences_begin(w, a);
    sim_defects_begin(w, a);
    for (uint32_t i = 0; i < a->n; i++) {
        struct sim_rank *r = &a->ranks[i];

        if (!r->alive)
            continue;
        plan_output(w, a, r);
        if (sim_is_auxiliary(w, r->rank)) {
            sim_auxiliary_begins(w, a, r);
            continue;
        }
        if (w->s->linked) {
            sim_plan(w, a, r, sim_between(&w->program, 5, 100) * SIM_MS, say_hello, 0);
            continue;
        }
        sim_rank_plans_mpi(w, a, r);
        sim_plan(w, a, r, w->s->work_ns + sim_below(&w->program, w->s->work_ns / 4), finish, 0);
    }
}

/* ---- checkpoints ---- */

static void send_commit(struct sim_world *w, struct sim_agent *a, enum dt_commit_kind kind)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m);
    int64_t step = kind == DT_RESTORE_BEGUN ? -1 : w->durable;

    m->commit = (struct dt_msg_commit){ a->generation, step, kind };
    sim_send(w, a, DT_MSG_COMMIT, m);
}

static void commit(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    const struct sim_rank *r = sim_acting_process(w, e);

    if (!r || r->stubborn || w->stuck_generation == a->generation || a->generation < w->owner)
        return;
    w->owner = a->generation;
    w->durable = sim_rank_step(w, r);
    send_commit(w, a, DT_COMMITTED);
    sim_plan(w, a, r, w->s->commit_ns, commit, 0);
}

/* No rank returns from a restore in which another one has died. */
static void end_restore(struct sim_world *w, struct sim_event *e)
{
    const struct sim_rank *r = sim_acting_process(w, e);

    if (r && !r->stubborn && w->stuck_generation != ((struct sim_agent *)e->who)->generation)
        send_commit(w, e->who, DT_RESTORED);
}

static void plan_checkpoints(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r)
{
    if (w->s->restores) {
        w->owner = a->generation;
        send_commit(w, a, DT_RESTORE_BEGUN);
        sim_plan(w, a, r, w->s->restore_ns, end_restore, 0);
    }
    if (w->s->commit_ns)
        sim_plan(w, a, r, w->s->restore_ns + w->s->commit_ns, commit, 0);
}

/* All ranks resume from the newest checkpoint, if the program does that. */
void sim_ranks_meet(struct sim_world *w, struct sim_agent *a)
{
    bool resume = w->s->restores && w->durable > 0;
    uint64_t done_ns = resume ? (uint64_t)w->durable * STEP_MS * SIM_MS : 0;
    uint64_t left_ns = w->s->work_ns > done_ns ? w->s->work_ns - done_ns : 0;

    for (uint32_t i = 0; i < a->nranks; i++) {
        struct sim_rank *r = &a->ranks[i];

        if (!r->alive)
            continue;
        r->works_ns = w->now_ns + w->s->restore_ns;
        r->began_ns = r->works_ns - done_ns;
        r->next_ns = r->works_ns + left_ns + sim_between(&w->program, 1, 20) * SIM_MS;
        sim_plan(w, a, r, r->next_ns - w->now_ns, finish, 0);
        sim_rank_sets_limits(w, a, r);
        if (r->stubborn)
            sim_rank_hangs(w, a, r);
        if (r->rank == 0)
            plan_checkpoints(w, a, r);
    }
}

/* ---- deaths ---- */

/* A few programs ignore all errors, and a few ranks do. */
static int status_after_failure(struct sim_world *w, const struct sim_rank *r)
{
    bool ignores = w->s->seed % 5 == 0 || sim_percent(&w->program, 5);

    if (ignores && !w->s->servers && !w->s->exit_grace_s)
        return 0;
    return r->peer_lost ? 1 : (int)sim_between(&w->program, 1, 3);
}

static void follow(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);

    if (r)
        sim_agent_reap(w, e->who, r, status_after_failure(w, r), 0);
}

/* A call on DT_WORLD returns an error, and the program ends. */
static void fail(struct sim_world *w, struct sim_event *e)
{
    const struct sim_agent *a = e->who;
    struct sim_rank *r = sim_acting_process(w, e);

    if (!r || r->stubborn || r->failed)
        return;
    r->failed = true;
    r->peer_lost = a->failed[SIM_WORLD] == DT_ERR_PEER || a->failed[SIM_WORLD] == DT_ERR_TIMEOUT;
    sim_rank_tells_last_calls(w, e->who, r);
    sim_plan(w, e->who, r,
             sim_percent(&w->program, 10) ? 2 * SIM_S : sim_between(&w->program, 1, 60) * SIM_MS,
             follow, 0);
}

void sim_ranks_abort(struct sim_world *w, struct sim_agent *a, int32_t code)
{
    if (!w->s->linked || a->phase != SIM_RUNNING)
        return;
    a->failed[SIM_WORLD] = a->failed[SIM_WORLD] ? a->failed[SIM_WORLD] : code;
    for (uint32_t i = 0; i < a->nranks; i++) {
        if (a->ranks[i].alive)
            sim_plan(w, a, &a->ranks[i], sim_between(&w->program, 1, 30) * SIM_MS, fail, 0);
    }
}

/* Ranks of the same host notice the death. In a world of few hosts, ranks of about half of the
 * other hosts notice it, too, from a connection that ends. */
void sim_rank_fail(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int code,
                   int signo)
{
    r->failed |= !sim_is_auxiliary(w, r->rank); /* it does not call dt_finalize */
    sim_agent_reap(w, a, r, code, signo);
    if (sim_is_auxiliary(w, r->rank)) /* no call of a rank fails because an auxiliary ends */
        return;
    w->stuck_generation = a->generation;
    if (code == 0 && signo == 0)
        w->left_generation = a->generation;
    for (struct sim_agent *other = w->agents; other; other = other->next) {
        if (other->generation == a->generation && other->phase == SIM_RUNNING &&
            (other == a || (w->s->hosts <= SIM_HOSTS_MAX && sim_percent(&w->program, 50))))
            sim_ranks_abort(w, other, DT_ERR_PEER);
    }
}

/* ---- signals ---- */

static void take_signal(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);
    int signo = what_of(e);

    if (!r)
        return;
    if (sim_percent(&w->program, 80))
        sim_agent_reap(w, e->who, r, -1, signo);
    else /* 75 means that it was preempted */
        sim_agent_reap(w, e->who, r, sim_percent(&w->program, 30) ? 75 : 1, 0);
}

void sim_rank_signal(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int signo)
{
    if (!r->alive || r->stubborn || r->asked || a->phase != SIM_RUNNING)
        return;
    r->asked = true;
    sim_plan(w, a, r, sim_between(&w->program, 0, 300) * SIM_MS / 10, take_signal, signo);
}
