/* What must hold after every event. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

enum { CHUNK = 16 * 1024 };

/* ---- what dtrun sends ---- */

/* No rank starts in place of those of a silent agent, and none runs anywhere, while one of a
 * generation before may. */
static void check_alone(struct sim_world *w, uint32_t generation, bool run)
{
    for (const struct sim_agent *a = w->agents; a; a = a->next) {
        if (a->left && a->generation < generation && a->fenced_in_time &&
            (run || a->conn->given_up) && !sim_agent_is_fenced(w, a))
            sim_broken(w, "ranks of generation %u %s while those of %u on %s are alive", generation,
                       run ? "run" : "start", a->generation, a->host->name);
    }
}

static void check_start(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m)
{
    struct sim_witness *x = &w->witness;

    if (m->generation != x->generation) {
        if (m->generation != x->generation + 1)
            sim_broken(w, "generation %u follows %u", m->generation, x->generation);
        sim_oracle_started(w, m);
        check_alone(w, m->generation, false);
    }
    if (c->started)
        sim_broken(w, "START of generation %u goes to %s, where %u runs", m->generation,
                   c->host->name, c->started);
    c->pausing = w->pausing;
    c->started = m->generation;
    c->stop_grace = UINT32_MAX;
}

/* A second STOP only shortens the first, or follows another order of the user. */
static void check_stop(struct sim_world *w, struct sim_conn *c, const struct dt_msg_stop *m)
{
    if (!c->started)
        sim_broken(w, "STOP goes to %s, where no rank runs", c->host->name);
    if (m->grace_ms >= c->stop_grace && w->witness.ordered_ns < c->stopped_ns)
        sim_broken(w, "STOP goes to %s a second time", c->host->name);
    c->stop_grace = m->grace_ms;
    c->stopped_ns = w->now_ns;
    sim_oracle_decided(w);
}

void sim_check_sent(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m)
{
    switch (type) {
    case DT_MSG_START:
        check_start(w, c, &m->start);
        break;
    case DT_MSG_STOP:
        check_stop(w, c, &m->stop);
        break;
    case DT_MSG_SIGNAL:
        if (m->signal.signo == SIGINT)
            sim_oracle_decided(w);
        w->pausing |= m->signal.signo == SIGSTOP;
        break;
    case DT_MSG_GO:
        if (m->go.generation != w->witness.generation)
            sim_broken(w, "GO of generation %u in %u", m->go.generation, w->witness.generation);
        if (w->witness.went != m->go.generation) /* once for all hosts */
            check_alone(w, m->go.generation, true);
        w->witness.went = m->go.generation;
        break;
    default:
        break;
    }
}

/* ---- what dtrun is told ---- */

static void check_commit(struct sim_world *w, const struct dt_msg_commit *m)
{
    struct sim_witness *x = &w->witness;

    if (m->generation != x->generation)
        return;
    if (!m->restored && m->step < x->newest)
        sim_broken(w, "step %" PRId64 " is committed after %" PRId64, m->step, x->newest);
    x->saved = true;
    x->newest = m->step;
}

static void check_done(struct sim_world *w, struct sim_conn *c, uint32_t generation)
{
    const struct sim_agent *a = c->agent;

    if (generation != c->started || generation != w->witness.generation)
        return;
    c->started = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        for (int k = 0; k < SIM_STREAMS; k++) {
            const struct sim_shown *s = &w->shown[a->ranks[i].rank][k];

            if (a->ranks[i].streams[k].produced != s->bytes && s->generation == generation)
                sim_broken(w, "of rank %u's stream %d %" PRIu64 " bytes have come, not %" PRIu64,
                           a->ranks[i].rank, k + 1, s->bytes, a->ranks[i].streams[k].produced);
        }
    }
}

static void check_refusal(struct sim_world *w, struct sim_conn *c,
                          const struct dt_msg_spawn_failed *m)
{
    int code = m->error == ENOENT ? 127 : 126;

    if (m->generation != w->witness.generation)
        return;
    c->started = 0;
    sim_oracle_cause(w, (struct sim_cause){ .kind = SIM_BY_REFUSAL,
                                            .code = m->step == DT_SPAWN_EXEC ? code : 125,
                                            .at_ns = w->now_ns });
}

void sim_check_told(struct sim_world *w, struct sim_conn *c, uint8_t type, const union dt_msg *m)
{
    switch (type) {
    case DT_MSG_COMMIT:
        check_commit(w, &m->commit);
        break;
    case DT_MSG_EXIT:
        sim_oracle_exit(w, c, &m->exit);
        break;
    case DT_MSG_RANK_HELLO:
        w->witness.met |= m->rank_hello.generation == w->witness.generation;
        break;
    case DT_MSG_SPAWN_FAILED:
        check_refusal(w, c, &m->spawn_failed);
        break;
    case DT_MSG_DONE:
        check_done(w, c, m->done.generation);
        break;
    default:
        break;
    }
}

void sim_check_lost(struct sim_world *w, struct sim_conn *c)
{
    if (c->started == w->witness.generation && c->started)
        sim_oracle_cause(
            w, (struct sim_cause){ .kind = SIM_BY_LOSS, .code = 125, .at_ns = w->now_ns });
    c->started = 0;
    w->witness.trouble = true;
}

/* ---- what is shown ---- */

/* Each stream comes once, in order, without a gap. */
void sim_check_output(struct sim_world *w, uint32_t rank, int fd, const char *data, size_t n)
{
    struct sim_shown *s = &w->shown[rank][fd - 1];
    char expected[CHUNK];

    if (s->generation != w->witness.generation) {
        if (s->generation && !s->ended)
            sim_broken(w, "rank %u's stream %d of generation %u has not ended", rank, fd,
                       s->generation);
        *s = (struct sim_shown){ .generation = w->witness.generation };
    }
    if (s->ended)
        sim_broken(w, "rank %u prints on stream %d after its end", rank, fd);
    sim_stream_bytes(expected, s->bytes, n, s->generation, rank, fd);
    if (memcmp(expected, data, n) != 0)
        sim_broken(w, "rank %u's stream %d is torn at byte %" PRIu64, rank, fd, s->bytes);
    s->bytes += n;
}

/* From which step it goes on is what was committed last. */
void sim_check_said(struct sim_world *w, const char *line)
{
    const char *from = strstr(line, "from the checkpoint of step ");
    long long step = -1;

    if (strncmp(line, "dtrun: restarting ", 18) != 0)
        return;
    if (from)
        sscanf(from, "from the checkpoint of step %lld", &step);
    if (step != w->witness.newest)
        sim_broken(w, "dtrun goes on from step %lld, but %" PRId64 " was committed", step,
                   w->witness.newest);
}

/* ---- at the end ---- */

void sim_check_end(struct sim_world *w)
{
    int code = dt_job_exit_code(w->job);
    char expected[256];

    for (const struct sim_agent *a = w->agents; a; a = a->next) {
        if (a->held) /* it waits for SIGCONT, which was lost with its connection */
            continue;
        if (a->alive && a->host->frozen_until <= w->now_ns && a->host->cut_until <= w->now_ns)
            sim_broken(w, "the agent of %s is left", a->host->name);
        else if (a->left && !sim_agent_is_fenced(w, a))
            sim_broken(w, "ranks on %s are left", a->host->name);
    }
    if (!sim_oracle_accepts(w, code, expected, sizeof expected))
        sim_broken(w, "dtrun exits with %d, not with %s", code, expected);
}
