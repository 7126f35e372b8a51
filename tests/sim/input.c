/* Standard input: dtrun reads it as far as the engine grants credit, and agents take it as their
 * ranks read it. Every byte must reach all ranks that read standard input, once and in order. If a
 * generation fails, what was read for it is lost. */
#include <inttypes.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/wire/frame.h"
#include "tests/sim/world.h"

enum { PIECE = DT_FRAME_PAYLOAD_MAX - 64, AGAIN_MS = 50 };

/* The bytes of standard input from this position on: they repeat after 251, a prime number. */
static void bytes_at(uint8_t *out, uint64_t position, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = i < 251 ? (uint8_t)((position + i) % 251) : out[i - 251];
}

static bool is_reader(const struct sim_world *w, uint32_t rank)
{
    return !sim_is_auxiliary(w, rank) &&
           (w->s->stdin_rank == DT_STDIN_ALL || (int64_t)rank == w->s->stdin_rank);
}

/* ---- dtrun's side ---- */

static void check_all_have_it(struct sim_world *w)
{
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_conn *c = w->hosts[i].conn;

        if (!c || !c->open || !c->reads || c->started != w->witness.generation)
            continue;
        if (c->stdin_sent != w->input.read - w->input.base)
            sim_broken(w, "%s has got %" PRIu64 " bytes of standard input, not %" PRIu64,
                       c->host->name, c->stdin_sent, w->input.read - w->input.base);
        if (c->stdin_ended != w->input.ended)
            sim_broken(w, "%s does not know whether standard input has ended", c->host->name);
    }
}

static void read_input(struct sim_world *w, struct sim_event *e)
{
    struct sim_input *in = &w->input;
    uint8_t data[PIECE];
    uint64_t n = w->s->stdin_bytes - in->read;

    (void)e;
    in->planned = false;
    if (in->credit == 0 || in->ended)
        return;
    if (w->witness.decided)
        sim_broken(w, "dtrun reads standard input for ranks that are being ended");
    n = n < in->credit ? n : in->credit;
    n = n < PIECE ? n : PIECE;
    bytes_at(data, in->read, n);
    in->read += n;
    in->credit -= n;
    in->ended = n == 0;
    if (in->ended)
        dt_job_stdin_eof(w->job);
    else
        dt_job_stdin(w->job, data, n);
    check_all_have_it(w);
    sim_stdin_credit(w, 0);
}

void sim_stdin_credit(void *arg, size_t n)
{
    struct sim_world *w = arg;

    w->input.credit += n;
    if (w->input.credit == 0 || w->input.planned || w->input.ended)
        return;
    w->input.planned = true;
    sim_later(w, sim_between(&w->program, 1, w->s->stdin_ms) * SIM_MS,
              (struct sim_event){ .act = read_input, .for_engine = true });
}

void sim_stdin_hold(void *arg)
{
    struct sim_world *w = arg;

    w->input.credit = 0;
}

/* ---- messages between them ---- */

void sim_stdin_started(struct sim_world *w, struct sim_conn *c, const struct dt_msg_start *m)
{
    w->input.base = w->input.read;
    c->reads = c->stdin_ended = false;
    c->stdin_sent = c->stdin_taken = 0;
    for (uint32_t i = 0; i < m->ranks.n; i++)
        c->reads |= is_reader(w, m->ranks.v[i]);
}

void sim_check_stdin(struct sim_world *w, struct sim_conn *c, const struct dt_msg_stdin *m)
{
    uint8_t expected[DT_FRAME_PAYLOAD_MAX];

    if (!c->reads || c->stdin_ended || m->generation != w->witness.generation)
        sim_broken(w, "dtrun sends %s standard input, which no rank there reads", c->host->name);
    bytes_at(expected, w->input.base + c->stdin_sent, m->data.n);
    if (memcmp(m->data.p, expected, m->data.n) != 0)
        sim_broken(w, "standard input for %s is torn after byte %" PRIu64, c->host->name,
                   c->stdin_sent);
    c->stdin_sent += m->data.n;
    if (c->stdin_sent - c->stdin_taken > DT_STDIN_CREDIT)
        sim_broken(w, "%s is sent %" PRIu64 " bytes of standard input more than it has taken",
                   c->host->name, c->stdin_sent - c->stdin_taken);
}

void sim_check_stdin_eof(struct sim_world *w, struct sim_conn *c)
{
    if (!c->reads || c->stdin_ended || !w->input.ended)
        sim_broken(w, "%s is sent the end of standard input", c->host->name);
    c->stdin_ended = true;
}

/* ---- the agent's side ---- */

static void take(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    union dt_msg *m;

    if (!a->alive || a->generation != e->epoch)
        return;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct sim_rank *r = &a->ranks[i];

        if (!is_reader(w, r->rank) || !r->alive)
            continue;
        if (a->phase == SIM_RUNNING && !r->stubborn && !r->stopped && !a->in_doubt &&
            w->now_ns >= a->host->frozen_until)
            continue;
        sim_later(w, AGAIN_MS * SIM_MS, *e);
        return;
    }
    m = dt_xcalloc(1, sizeof *m);
    m->stdin_credit = (struct dt_msg_stdin_credit){ a->generation, (uint32_t)e->n };
    sim_send(w, a, DT_MSG_STDIN_CREDIT, m);
}

void sim_agent_on_stdin(struct sim_world *w, struct sim_agent *a, const struct dt_msg_stdin *m)
{
    if (m->generation == a->generation)
        sim_later(
            w, sim_between(&w->program, 1, 50) * SIM_MS / 10,
            (struct sim_event){ .act = take, .who = a, .n = m->data.n, .epoch = a->generation });
}

void sim_agent_on_stdin_eof(struct sim_agent *a, const struct dt_msg_stdin_eof *m)
{
    a->stdin_ended |= m->generation == a->generation;
}

bool sim_rank_awaits_stdin(const struct sim_world *w, const struct sim_agent *a,
                           const struct sim_rank *r)
{
    return is_reader(w, r->rank) && !a->stdin_ended;
}
