/* A model agent, which follows PROTOCOL.md. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "runtime/dtrun.h"
#include "runtime/wire/frame.h"
#include "tests/sim/world.h"

enum {
    OUTPUT_MAX = DT_FRAME_PAYLOAD_MAX - 16,
    FIRST_LEASE_S = 120,
    FREE_PORT = 40000,
    QUIET_MS = 200,
    ALIVE_MS = 250,
};

uint64_t sim_host_clock(const struct sim_world *w, const struct sim_host *h)
{
    int64_t gone = (int64_t)(w->now_ns - w->began_ns);

    return h->clock_ns + (uint64_t)(gone + gone / 1000000 * h->drift_ppm);
}

static union dt_msg *new_msg(void)
{
    return dt_xcalloc(1, sizeof(union dt_msg));
}

/* ---- the lease ---- */

bool sim_agent_is_fenced(const struct sim_world *w, const struct sim_agent *a)
{
    return a->left == 0 || w->now_ns - a->heard_ns >= a->lease_ns;
}

static void kill_ranks(struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->ranks[i].alive = false;
    a->left = 0;
    a->alive = false;
}

static bool has_ranks(const struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->nranks; i++) {
        if (a->ranks[i].alive)
            return true;
    }
    return false;
}

/* The agent kills all its ranks before its side of the connection ends. */
static void leave(struct sim_world *w, struct sim_agent *a, const char *why)
{
    sim_trace(w, "agent of %s leaves: %s", a->host->name, why);
    if (has_ranks(a))
        w->stuck_generation = a->generation;
    kill_ranks(a);
    sim_conn_end(w, a->conn, why);
}

static void look_at_lease(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    uint64_t due_ns = a->heard_ns + a->lease_ns;

    if (!a->alive)
        return;
    if (w->now_ns < a->host->frozen_until) {
        if (a->host->frozen_until != UINT64_MAX) {
            e->n = a->host->frozen_until - w->now_ns; /* how long it stood still */
            e->at_ns = a->host->frozen_until;
            sim_queue_put(&w->queue, *e);
        }
        return;
    }
    if (a->held)
        due_ns = w->now_ns + a->lease_ns / 4;
    if (w->now_ns >= due_ns && e->n > a->lease_ns / 4) {
        a->in_doubt = true;
        due_ns = w->now_ns + a->lease_ns;
    }
    if (w->now_ns >= due_ns) {
        leave(w, a, "lost the launcher: it has been silent for too long");
        return;
    }
    e->n = 0;
    e->at_ns = due_ns;
    sim_queue_put(&w->queue, *e);
}

static void watch_lease(struct sim_world *w, struct sim_agent *a, uint64_t lease_ns)
{
    a->lease_ns = lease_ns;
    a->heard_ns = w->now_ns;
    sim_later(w, lease_ns, (struct sim_event){ .act = look_at_lease, .who = a });
}

/* ---- beginning and end ---- */

/* Files and slow forks leave an agent no time to answer PING. */
static bool is_busy(const struct sim_world *w, const struct sim_agent *a)
{
    return a->receiving || (a->phase == SIM_SPAWNING && w->s->spawn_ns);
}

/* Four times a second, PONG as a mere sign of life. */
static void show_alive(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;

    if (!a->alive || !is_busy(w, a) || e->epoch != a->generation)
        return;
    if (w->now_ns >= a->host->frozen_until)
        sim_send(w, a, DT_MSG_PONG, new_msg());
    sim_later(w, ALIVE_MS * SIM_MS, *e);
}

static void watch_busy(struct sim_world *w, struct sim_agent *a)
{
    sim_later(w, ALIVE_MS * SIM_MS,
              (struct sim_event){ .act = show_alive, .who = a, .epoch = a->generation });
}

bool sim_agent_acts(struct sim_world *w, struct sim_event *e)
{
    const struct sim_agent *a = e->who;
    uint64_t frozen_until = a->host->frozen_until;

    if (a->alive && w->now_ns < frozen_until && frozen_until != UINT64_MAX)
        sim_queue_put_off(&w->queue, e, frozen_until);
    return a->alive && w->now_ns >= frozen_until;
}

static void get_files(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;

    if (!sim_agent_acts(w, e))
        return;
    a->receiving = false;
    sim_send_pushed(w, a);
}

static void receive_files(struct sim_world *w, struct sim_agent *a)
{
    if (!w->s->push_ns) {
        sim_send_pushed(w, a);
        return;
    }
    a->receiving = true;
    watch_busy(w, a);
    sim_later(w, sim_below(&w->program, w->s->push_ns),
              (struct sim_event){ .act = get_files, .who = a });
}

static void say_hello(struct sim_world *w, struct sim_agent *a)
{
    const struct sim_host *h = a->host;
    struct dt_msg_netaddr *addrs = dt_xcalloc(SIM_NETWORKS, sizeof *addrs);
    union dt_msg *m = new_msg();

    for (int i = 0; i < SIM_NETWORKS; i++)
        addrs[i] =
            (struct dt_msg_netaddr){ dt_xasprintf("eth%d", i), dt_xstrdup(h->addrs[i]), 1500 };
    m->hello = (struct dt_msg_hello){
        .protocol = DT_PROTOCOL,
        .version = dt_xstrdup("0"),
        .identity = dt_xstrdup(h->identity),
        .hostname = dt_xstrdup(h->name),
        .addr = dt_xstrdup(h->addrs[0]),
        .peer_addr = dt_xstrdup("10.255.0.1"),
        .free_port = FREE_PORT,
        .probe_port = FREE_PORT + 100,
        .time_ns = sim_host_clock(w, h),
        .addrs = { addrs, SIM_NETWORKS },
        .in_step = w->s->batch,
    };
    sim_send(w, a, DT_MSG_HELLO, m);
}

struct sim_agent *sim_agent_new(struct sim_world *w, struct sim_conn *c)
{
    struct sim_agent *a = dt_xcalloc(1, sizeof *a);

    *a = (struct sim_agent){
        .next = w->agents, .host = c->host, .conn = c, .alive = true, .fenced_in_time = true
    };
    a->next_here = a->host->agents;
    w->agents = a->host->agents = a;
    c->agent = a;
    watch_lease(w, a, FIRST_LEASE_S * SIM_S);
    say_hello(w, a);
    receive_files(w, a);
    return a;
}

void sim_agent_hung_up(struct sim_world *w, struct sim_agent *a)
{
    leave(w, a, "lost the launcher: it closed the connection");
}

void sim_agent_die(struct sim_world *w, struct sim_agent *a)
{
    if (has_ranks(a))
        w->stuck_generation = a->generation;
    kill_ranks(a);
    (void)w;
}

/* ---- output ---- */

static void send_output(struct sim_world *w, struct sim_agent *a, const struct sim_rank *r, int fd,
                        uint64_t from, size_t n)
{
    union dt_msg *m = dt_xcalloc(1, sizeof *m + n);
    char *data = (char *)(m + 1);

    sim_stream_bytes(data, from, n, a->generation, r->rank, fd);
    m->output = (struct dt_msg_output){ r->rank, (uint8_t)fd, { (uint8_t *)data, n } };
    sim_send(w, a, DT_MSG_OUTPUT, m);
}

static void flush_stream(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int fd)
{
    struct sim_stream *s = &r->streams[fd - 1];

    while (s->sent < s->produced && s->credit > 0) {
        uint64_t n = s->produced - s->sent;

        n = n < OUTPUT_MAX ? n : OUTPUT_MAX;
        n = n < s->credit ? n : s->credit;
        send_output(w, a, r, fd, s->sent, n);
        s->sent += n;
        s->credit -= n;
    }
    if (!r->alive && s->sent == s->produced && !s->ended) {
        union dt_msg *m = new_msg();

        s->ended = true;
        m->output_eof = (struct dt_msg_output_eof){ r->rank, (uint8_t)fd };
        sim_send(w, a, DT_MSG_OUTPUT_EOF, m);
    }
}

/* Nothing has followed output that ends in the middle of a line. */
static void say_quiet(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);
    int fd = (int)(e->n & 1) + 1;
    const struct sim_stream *s = r ? &r->streams[fd - 1] : NULL;
    union dt_msg *m;

    if (!s || s->sent != s->produced || w->now_ns - s->printed_ns < QUIET_MS * SIM_MS ||
        !sim_is_line_unfinished(s->sent))
        return;
    m = new_msg();
    m->output_quiet = (struct dt_msg_output_quiet){ r->rank, (uint8_t)fd };
    sim_send(w, e->who, DT_MSG_OUTPUT_QUIET, m);
}

void sim_agent_print(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int fd,
                     uint64_t n)
{
    r->streams[fd - 1].produced += n;
    r->streams[fd - 1].printed_ns = w->now_ns;
    flush_stream(w, a, r, fd);
    sim_plan(w, a, r, QUIET_MS * SIM_MS, say_quiet, fd - 1);
}

static void maybe_done(struct sim_world *w, struct sim_agent *a)
{
    union dt_msg *m;

    if (a->phase != SIM_SWEEPING || a->left)
        return;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!a->ranks[i].streams[0].ended || !a->ranks[i].streams[1].ended)
            return;
    }
    a->phase = SIM_NOTHING;
    m = new_msg();
    m->done.generation = a->generation;
    sim_send(w, a, DT_MSG_DONE, m);
}

void sim_agent_flush(struct sim_world *w, struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        for (int fd = 1; fd <= SIM_STREAMS; fd++)
            flush_stream(w, a, &a->ranks[i], fd);
    }
    maybe_done(w, a);
}

static void on_swept(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;

    if (a->alive && e->n == a->generation)
        sim_agent_flush(w, a);
}

/* ---- a generation ---- */

static uint32_t flags_of(const struct sim_world *w, const struct sim_agent *a,
                         const struct sim_rank *r, int code)
{
    uint32_t flags = a->stopping ? DT_EXITED_STOPPED : 0;

    if (w->s->linked && !sim_is_auxiliary(w, r->rank))
        flags |= DT_EXITED_LINKED |
                 (code == 0 && !r->failed && !w->s->forgets ? DT_EXITED_FINALIZED : 0);
    flags |= r->careless ? DT_EXITED_COMM_FAILED : 0;
    return r->peer_lost ? flags | DT_EXITED_PEER_LOST : flags;
}

static void sweep_when_all_ended(struct sim_world *w, struct sim_agent *a)
{
    if (a->left || a->phase == SIM_SWEEPING)
        return;
    a->phase = SIM_SWEEPING;
    sim_later(w, sim_between(&w->program, 1, 20) * SIM_MS,
              (struct sim_event){ .act = on_swept, .who = a, .n = a->generation });
}

void sim_agent_reap(struct sim_world *w, struct sim_agent *a, struct sim_rank *r, int code,
                    int signo)
{
    union dt_msg *m = new_msg();

    sim_trace(w, "rank %u of generation %u ends: code %d, signal %d", r->rank, a->generation, code,
              signo);
    r->alive = false;
    r->life++;
    a->left--;
    m->exit = (struct dt_msg_exit){ .generation = a->generation,
                                    .rank = r->rank,
                                    .pid = 1000 + r->rank,
                                    .code = code,
                                    .signo = signo,
                                    .time_ns = sim_host_clock(w, a->host),
                                    .step = w->s->linked ? sim_rank_step(w, r) : -1,
                                    .flags = flags_of(w, a, r, code) };
    sim_send(w, a, DT_MSG_EXIT, m);
    if (code == 0 && !sim_is_auxiliary(w, r->rank))
        sim_auxiliaries_rank_ended(w, a->generation);
    for (int fd = 1; fd <= SIM_STREAMS; fd++)
        flush_stream(w, a, r, fd);
    sweep_when_all_ended(w, a);
}

/* Kills ranks that were left on this host by earlier agents, which were killed or cut off. */
static void kill_leftovers(struct sim_world *w, const struct sim_agent *of)
{
    for (struct sim_agent *a = of->host->agents; a && of->generation > 1; a = a->next_here) {
        if (a == of || a->generation >= of->generation)
            continue;
        for (uint32_t i = 0; i < a->n; i++) {
            if (a->ranks[i].alive)
                sim_agent_reap(w, a, &a->ranks[i], -1, SIGKILL);
        }
    }
}

/* Why the agent cannot start the ranks. */
static struct dt_msg_spawn_failed reason(const struct sim_agent *a)
{
    static const struct {
        uint8_t step;
        int32_t error;
    } reasons[] = {
        [SIM_NO_MEMORY] = { DT_SPAWN_SYSTEM, ENOMEM }, [SIM_NOT_FOUND] = { DT_SPAWN_EXEC, ENOENT },
        [SIM_NOT_ALLOWED] = { DT_SPAWN_EXEC, EACCES }, [SIM_STUCK] = { DT_SPAWN_LEFTOVER, 0 },
        [SIM_ALIVE] = { DT_SPAWN_LEFTOVER, EPERM },
    };

    return (struct dt_msg_spawn_failed){ .generation = a->generation,
                                         .rank = a->ranks[0].rank,
                                         .step = reasons[a->host->spawn_code].step,
                                         .error = reasons[a->host->spawn_code].error,
                                         .what = dt_xstrdup("./train") };
}

static void get_ready(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;
    union dt_msg *m;

    if (!a->alive || a->phase != SIM_SPAWNING || a->generation != e->n)
        return;
    m = new_msg();
    if (a->refuses) {
        a->phase = SIM_NOTHING;
        a->left = 0;
        for (uint32_t i = 0; i < a->n; i++)
            a->ranks[i].alive = false;
        m->spawn_failed = reason(a);
        sim_send(w, a, DT_MSG_SPAWN_FAILED, m);
        return;
    }
    a->phase = SIM_READY;
    m->ready.generation = a->generation;
    sim_send(w, a, DT_MSG_READY, m);
}

static void on_start(struct sim_world *w, struct sim_agent *a, const struct dt_msg_start *m)
{
    if (a->phase != SIM_NOTHING || m->generation <= a->generation)
        sim_broken(w, "%s got START of generation %u while in %u", a->host->name, m->generation,
                   a->generation);
    if (a->held && !a->conn->pausing)
        sim_broken(w, "%s gets START while its lease is suspended", a->host->name);
    free(a->ranks);
    a->generation = m->generation;
    a->np = m->np;
    a->node = m->node_rank;
    a->nodes = m->nodes;
    a->nranks = m->ranks.n;
    a->n = a->left = m->ranks.n + m->auxiliaries.n;
    a->ranks = dt_xcalloc(a->n, sizeof *a->ranks);
    a->stopping = a->stdin_ended = false;
    a->limit_ms = 0;
    memset(a->failed, 0, sizeof a->failed);
    a->phase = SIM_SPAWNING;
    for (uint32_t i = 0; i < a->n; i++) {
        a->ranks[i] = (struct sim_rank){ .rank = i < a->nranks ? m->ranks.v[i]
                                                               : m->auxiliaries.v[i - a->nranks],
                                         .alive = true };
        for (int k = 0; k < SIM_STREAMS; k++)
            a->ranks[i].streams[k].credit = DT_STREAM_CREDIT;
    }
    kill_leftovers(w, a);
    a->refuses = a->host->spawn_fails && (a->generation > 1 || a->host->spawn_code < SIM_STUCK);
    a->host->spawn_fails &= !a->refuses || a->host->spawn_code >= SIM_STUCK;
    watch_lease(w, a, (uint64_t)m->heartbeat_ms * SIM_MS);
    if (is_busy(w, a))
        watch_busy(w, a);
    sim_later(w,
              sim_between(&w->program, 2, 80) * SIM_MS + sim_below(&w->program, w->s->spawn_ns + 1),
              (struct sim_event){ .act = get_ready, .who = a, .n = a->generation });
}

static void on_go(struct sim_world *w, struct sim_agent *a, const struct dt_msg_go *m)
{
    struct dt_msg_started_rank *ranks;
    union dt_msg *started;

    if (a->phase != SIM_READY || m->generation != a->generation)
        return;
    a->phase = SIM_RUNNING;
    ranks = dt_xcalloc(a->n, sizeof *ranks);
    for (uint32_t i = 0; i < a->n; i++)
        ranks[i] = (struct dt_msg_started_rank){ a->ranks[i].rank, 1000 + a->ranks[i].rank,
                                                 dt_xstrdup("") };
    started = new_msg();
    started->started = (struct dt_msg_started){ a->generation, { ranks, a->n } };
    sim_send(w, a, DT_MSG_STARTED, started);
    sim_ranks_begin(w, a);
    sim_agent_inject(w, a);
}

static void kill_all(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who;

    if (!a->alive || a->generation != e->n)
        return;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->ranks[i].alive)
            sim_agent_reap(w, a, &a->ranks[i], -1, SIGKILL);
    }
}

static void on_stop(struct sim_world *w, struct sim_agent *a, const struct dt_msg_stop *m)
{
    uint64_t grace_ns = (uint64_t)m->grace_ms * SIM_MS;

    if (a->phase == SIM_NOTHING || a->phase == SIM_SWEEPING || a->refuses)
        return;
    if (a->phase != SIM_RUNNING)
        grace_ns = 0;
    a->phase = SIM_RUNNING;
    a->stopping = true;
    for (uint32_t i = 0; i < a->n; i++)
        a->ranks[i].stopped = false; /* as SIGCONT does */
    for (uint32_t i = 0; i < a->n && grace_ns; i++)
        sim_rank_signal(w, a, &a->ranks[i], SIGTERM);
    sim_later(w, grace_ns + sim_between(&w->program, 1, 20) * SIM_MS,
              (struct sim_event){ .act = kill_all, .who = a, .n = a->generation });
}

/* ---- questions ---- */

static void on_ping(struct sim_world *w, struct sim_agent *a, const struct dt_msg_ping *m)
{
    union dt_msg *pong = new_msg();

    pong->pong.ping_time_ns = m->time_ns;
    pong->pong.time_ns = sim_host_clock(w, a->host);
    if (a->phase != SIM_NOTHING) {
        struct dt_msg_step *steps = dt_xcalloc(a->nranks, sizeof *steps);

        for (uint32_t i = 0; i < a->nranks; i++)
            steps[i] = (struct dt_msg_step){ a->ranks[i].rank, sim_rank_step(w, &a->ranks[i]), 0 };
        pong->pong.generation = a->generation;
        pong->pong.steps = (struct dt_msg_list){ steps, a->nranks };
        sim_agent_tell_waits(w, a, &pong->pong);
    }
    sim_send(w, a, DT_MSG_PONG, pong);
}

static void on_query(struct sim_world *w, struct sim_agent *a, const struct dt_msg_query *m)
{
    struct dt_u32s leaving = { dt_xcalloc(a->n + 1, sizeof *leaving.v), 0 };
    union dt_msg *answer = new_msg();

    for (uint32_t i = 0; i < a->n; i++) {
        if (a->ranks[i].alive && a->ranks[i].peer_lost)
            leaving.v[leaving.n++] = a->ranks[i].rank;
    }
    answer->answer = (struct dt_msg_answer){ m->id, leaving };
    sim_send(w, a, DT_MSG_ANSWER, answer);
}

static void on_signal(struct sim_world *w, struct sim_agent *a, int signo)
{
    if (signo == SIGSTOP || signo == SIGCONT)
        a->held = signo == SIGSTOP;
    for (uint32_t i = 0; i < a->n && (signo == SIGSTOP || signo == SIGCONT); i++)
        a->ranks[i].stopped = signo == SIGSTOP;
    for (uint32_t i = 0; i < a->n && (signo == SIGINT || signo == SIGTERM); i++)
        sim_rank_signal(w, a, &a->ranks[i], signo);
}

static void on_credit(struct sim_world *w, struct sim_agent *a, const struct dt_msg_credit *m)
{
    if (a->phase == SIM_NOTHING) /* ranks that were refused have no streams */
        return;
    for (uint32_t i = 0; i < a->n; i++) {
        struct sim_stream *s = &a->ranks[i].streams[m->fd - 1];

        if (a->ranks[i].rank != m->rank)
            continue;
        s->credit += m->bytes;
        if (s->credit > DT_STREAM_CREDIT)
            s->credit = DT_STREAM_CREDIT; /* credit of the last generation may still arrive */
        flush_stream(w, a, &a->ranks[i], m->fd);
    }
    maybe_done(w, a);
}

void sim_agent_hear(struct sim_world *w, struct sim_event *e)
{
    struct sim_agent *a = e->who ? ((struct sim_conn *)e->who)->agent : NULL;
    const union dt_msg *m = e->msg;

    a->heard_ns = w->now_ns;
    a->in_doubt = false;
    switch (e->type) {
    case DT_MSG_START:
        on_start(w, a, &m->start);
        break;
    case DT_MSG_GO:
        on_go(w, a, &m->go);
        break;
    case DT_MSG_STOP:
        on_stop(w, a, &m->stop);
        break;
    case DT_MSG_PROBE:
        sim_agent_on_probe(w, a, &m->probe);
        break;
    case DT_MSG_PING:
        on_ping(w, a, &m->ping);
        break;
    case DT_MSG_QUERY:
        on_query(w, a, &m->query);
        break;
    case DT_MSG_SIGNAL:
        on_signal(w, a, m->signal.signo);
        break;
    case DT_MSG_CREDIT:
        on_credit(w, a, &m->credit);
        break;
    case DT_MSG_STDIN:
        sim_agent_on_stdin(w, a, &m->stdin);
        break;
    case DT_MSG_STDIN_EOF:
        sim_agent_on_stdin_eof(a, &m->stdin_eof);
        break;
    case DT_MSG_TABLE:
        if (m->table.generation == a->generation)
            sim_ranks_meet(w, a);
        break;
    case DT_MSG_ABORT:
        sim_agent_on_abort(w, a, &m->abort);
        break;
    case DT_MSG_FENCED:
        sim_agent_on_fenced(w, a, &m->fenced);
        break;
    case DT_MSG_END:
        leave(w, a, "");
        break;
    default:
        sim_broken(w, "dtrun sends %s", dt_msg_name(e->type));
    }
}

/* Sends messages of the last generation again, as if the network had delayed them. */
void sim_agent_repeat(struct sim_world *w, struct sim_agent *a)
{
    static const uint8_t types[] = { DT_MSG_COMMIT,    DT_MSG_READY, DT_MSG_FAILED, DT_MSG_FENCE,
                                     DT_MSG_MPI_STATE, DT_MSG_EXIT,  DT_MSG_DONE };
    uint32_t old = a->generation - 1;

    if (a->generation == 1)
        return;
    for (size_t i = 0; i < sizeof types; i++) {
        union dt_msg *m = new_msg();

        if (types[i] == DT_MSG_COMMIT)
            m->commit = (struct dt_msg_commit){ old, 1000000, DT_COMMITTED };
        else if (types[i] == DT_MSG_FAILED)
            m->failed = (struct dt_msg_failed){ .generation = old,
                                                .rank = a->ranks[0].rank,
                                                .code = DT_ERR_MISMATCH,
                                                .text = dt_xstrdup("late") };
        else if (types[i] == DT_MSG_MPI_STATE)
            m->mpi_state = (struct dt_msg_mpi_state){ old, a->ranks[0].rank, 1 };
        else if (types[i] == DT_MSG_EXIT)
            m->exit = (struct dt_msg_exit){ .generation = old,
                                            .rank = a->ranks[0].rank,
                                            .pid = 7,
                                            .code = 99,
                                            .step = -1,
                                            .time_ns = sim_host_clock(w, a->host) };
        else
            m->ready.generation = old; /* DONE and FENCE have it in the same place */
        sim_send(w, a, types[i], m);
    }
    sim_agent_tell_limit(w, a, old, 100);
    sim_agent_tell_last_calls(w, a, a->ranks[0].rank, old, DT_ERR_MISMATCH);
}
