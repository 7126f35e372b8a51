/* Deaths: recording them, finding out which was the first, and what follows from it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/job/exitpolicy.h"
#include "launcher/job/words.h"
#include "runtime/wire/hostshm.h"

enum {
    ANSWER_MS = 10 * 1000, /* what agents get for their answers: they wait for what is dying */
    GIVE_UP_MS = 1000,     /* then: for ranks to follow the one that only left, or hangs */
    LAST_WORDS_MS = 50,    /* then: for the rest of the culprit's standard error */
};

/* Ranks wait for each other when one of them is linked and still there, or a call of one has
 * failed.
 */
int dt_job_cause(const struct dt_job *j)
{
    return j->causes[j->linked_alive > 0 || j->lost_peer];
}

void dt_job_add_death(struct dt_job *j, const struct dt_death *death)
{
    j->deaths[j->ndeaths] = *death;
    for (int peers_wait = 0; peers_wait < 2; peers_wait++)
        j->causes[peers_wait] =
            dt_cause_next(j->deaths, j->causes[peers_wait], (int)j->ndeaths, peers_wait);
    j->ndeaths++;
    j->lost_peer |= (death->flags & DT_EXITED_PEER_LOST) != 0;
}

static void end_rank(struct dt_job *j, struct dt_rank *r, const struct dt_death *end)
{
    j->linked_alive -= r->hello;
    r->ended = true;
    r->end = *end;
}

void dt_job_on_exit(struct dt_job *j, struct dt_hostlink *h, const struct dt_msg_exit *m)
{
    struct dt_rank *r = m->rank < j->np ? &j->ranks[m->rank] : NULL;

    if (m->generation != j->generation || !r || r->ended)
        return;
    r->pid = m->pid;
    end_rank(j, r,
             &(struct dt_death){
                 .rank = m->rank,
                 .code = m->code,
                 .signo = m->signo,
                 .flags = m->flags,
                 .step = m->step,
                 .time_ns = dt_heartbeat_local(&h->heartbeat, m->time_ns),
             });
    dt_job_add_death(j, &r->end);
    if (m->step > j->reached)
        j->reached = m->step;
    j->reached_is_known |= m->step >= 0;
    dt_verbose("rank %u ended: code %d, signal %d, step %" PRId64 ", flags %#x", m->rank, m->code,
               m->signo, m->step, m->flags);
    if (m->code == 0)
        dt_job_watch_stragglers(j);
    if (dt_job_cause(j) >= 0)
        dt_job_event(j, DT_EV_RANK_FAILED);
    dt_job_settle(j);
}

/* The reason goes to all hosts before any death that follows from it: agents heed the first. */
void dt_job_on_failed(struct dt_job *j, const struct dt_msg_failed *m)
{
    struct dt_msg_abort abort = { m->generation, m->rank, m->code, m->text };

    if (m->generation != j->generation ||
        (j->state != DT_JOB_STARTING && j->state != DT_JOB_RUNNING))
        return;
    dt_verbose("a call failed: %s", m->text);
    dt_job_send_all(j, DT_MSG_ABORT, &abort);
}

void dt_job_host_lost(struct dt_job *j, struct dt_hostlink *h)
{
    const struct dt_plan_node *node = dt_job_node_of_host(j, h->host);

    if (!node)
        return;
    for (uint32_t i = 0; i < node->ranks.n; i++) {
        uint32_t rank = node->ranks.v[i];
        struct dt_rank *r = &j->ranks[rank];

        if (!r->ended)
            end_rank(j, r, &(struct dt_death){ .rank = rank, .code = -1 });
        r->tail_eof = true;
        /* Nothing will complete a line that was begun; what comes next is of another process. */
        dt_outmux_eof(j->out, rank, STDOUT_FILENO);
        dt_outmux_eof(j->out, rank, STDERR_FILENO);
    }
    dt_job_host_struck(j, node);
    if (j->state == DT_JOB_STARTING || j->state == DT_JOB_RUNNING || j->state == DT_JOB_FAILING)
        dt_job_add_death(j, &(struct dt_death){
                                .host = true,
                                .rank = node->ranks.v[0],
                                .code = -1,
                                .step = -1,
                                .time_ns = h->heartbeat.heard_ns,
                            });
    dt_job_event(j, DT_EV_HOST_LOST);
    dt_job_settle(j);
}

static void on_collected(uv_timer_t *timer)
{
    dt_job_event(timer->data, DT_EV_SETTLED);
}

void dt_job_ask(struct dt_job *j)
{
    struct dt_msg_query query = { ++j->query };

    for (size_t i = 0; i < j->config->hosts->n; i++) {
        if (j->links[i])
            j->links[i]->answered = false;
    }
    dt_job_send_all(j, DT_MSG_QUERY, &query);
}

void dt_job_collect(struct dt_job *j)
{
    int cause = dt_job_cause(j);
    bool hung = cause >= 0 && j->deaths[cause].hung;
    struct dt_msg_abort abort = { j->generation, cause < 0 ? 0 : j->deaths[cause].rank,
                                  hung ? DT_HOSTSHM_TIMED_OUT : DT_HOSTSHM_PEER_DIED,
                                  hung ? j->hang_text : (char *)"" };

    j->state = DT_JOB_FAILING;
    j->failed_ns = dt_now_ns();
    dt_job_send_all(j, DT_MSG_ABORT, &abort);
    dt_job_ask(j);
    uv_timer_start(&j->collect, on_collected, ANSWER_MS, 0);
}

bool dt_job_all_answered(const struct dt_job *j)
{
    for (size_t i = 0; i < j->config->hosts->n; i++) {
        if (dt_hostlink_has_ranks(j->links[i]) && !j->links[i]->answered)
            return false;
    }
    return true;
}

/* A rank that only left, or was drawn along, may still turn out to follow from another's death. */
static bool is_certain(const struct dt_job *j, const struct dt_death *cause)
{
    if (cause->hung)
        return dt_job_alive(j) <= 1; /* those who waited may say so before they are ended */
    return cause->host ||
           (!(cause->flags & DT_EXITED_PEER_LOST) && dt_exit_of_rank(cause->code, cause->signo));
}

/* What is waited for comes within so long, or will not. */
static void wait_at_most(struct dt_job *j, uint64_t ms)
{
    if (uv_timer_get_due_in(&j->collect) > ms)
        uv_timer_start(&j->collect, on_collected, ms, 0);
}

void dt_job_settle(struct dt_job *j)
{
    int cause;

    if (j->state != DT_JOB_FAILING || !dt_job_all_answered(j))
        return;
    cause = dt_job_cause(j);
    if (cause < 0 || !is_certain(j, &j->deaths[cause]))
        wait_at_most(j, GIVE_UP_MS);
    else if (j->deaths[cause].host || j->ranks[j->deaths[cause].rank].tail_eof)
        dt_job_event(j, DT_EV_SETTLED);
    else
        wait_at_most(j, LAST_WORDS_MS);
}

static void describe_host(struct dt_job *j, const struct dt_plan_node *node, struct dt_strbuf *out)
{
    const struct dt_hostlink *h = j->links[node->host];

    dt_strbuf_printf(out, "%s%s %s; its ", dt_job_host_name(j, node->host), h->closing ? "" : ":",
                     h->why.text[0] ? h->why.text : "agent: it ended unexpectedly");
    dt_words_ranks(out, &node->ranks);
    dt_strbuf_puts(out, node->ranks.n == 1 ? " is taken as lost" : " are taken as lost");
}

static void describe(struct dt_job *j, const struct dt_death *cause, struct dt_strbuf *out)
{
    const struct dt_plan_node *node = dt_plan_node_of(&j->plan, (int)cause->rank);

    if (cause->hung)
        dt_strbuf_puts(out, j->hang_text);
    else if (cause->host)
        describe_host(j, node, out);
    else
        dt_words_death(out, cause, dt_job_host_name(j, node->host), j->ranks[cause->rank].pid);
}

/* With one rank all it wrote stands right above. */
static void say_last_words(struct dt_job *j, const struct dt_death *cause)
{
    bool invalid_device = false;
    const char *line;

    if (cause->host)
        return;
    for (unsigned i = 0; (line = dt_tail_line(&j->ranks[cause->rank].tail, i)); i++) {
        invalid_device |= strstr(line, "invalid device ordinal") != NULL;
        if (j->np > 1)
            dt_say("| [%u] %s", cause->rank, line);
    }
    if (invalid_device && j->config->gpu_bind == DT_GPU_BIND_RANK)
        dt_say("hint: each rank sees one GPU, which is its device 0; for programs that choose the "
               "device by LOCAL_RANK there are --virtual-local-rank (LOCAL_RANK is 0) and "
               "--gpu-bind host (a rank sees all GPUs of its host)");
}

static void add_stopping(struct dt_job *j, const struct dt_death *cause, struct dt_strbuf *out)
{
    uint32_t alive = dt_job_alive(j);
    uint32_t others = alive && cause->hung && !j->ranks[cause->rank].ended ? alive - 1 : alive;

    if (others == 1)
        dt_strbuf_puts(out, "; stopping the other rank");
    else if (others > 1)
        dt_strbuf_printf(out, "; stopping the other %u ranks", others);
}

static void say_giving_up(const struct dt_job *j, const struct dt_death *cause,
                          enum dt_restart_verdict verdict)
{
    struct dt_strbuf b = { 0 };

    dt_words_count(&b, j->restart.restarts, "restart");
    if (verdict == DT_RESTART_LIMIT && j->restart.restarts > 0)
        dt_say("giving up after %s (--max-restarts %d)", dt_strbuf_text(&b),
               j->restart.max_restarts);
    else if (verdict == DT_RESTART_NO_PROGRESS && !cause->host &&
             j->alike > DT_RESTARTS_WITHOUT_PROGRESS)
        dt_say("giving up: %d restarts without progress (no newer checkpoint), each time rank %u "
               "failed in this way",
               DT_RESTARTS_WITHOUT_PROGRESS, cause->rank);
    else if (verdict == DT_RESTART_NO_PROGRESS)
        dt_say("giving up: %d restarts without progress (no newer checkpoint)",
               DT_RESTARTS_WITHOUT_PROGRESS);
    dt_strbuf_free(&b);
}

static void count_alike(struct dt_job *j, const struct dt_death *cause)
{
    const struct dt_death *last = &j->last_cause;
    bool alike = j->alike > 0 && cause->host == last->host && cause->hung == last->hung &&
                 cause->rank == last->rank && cause->code == last->code &&
                 cause->signo == last->signo;

    j->alike = alike ? j->alike + 1 : 1;
    j->last_cause = *cause;
}

static void end_with(struct dt_job *j, const struct dt_death *cause, const char *text,
                     enum dt_restart_verdict verdict)
{
    struct dt_strbuf line = { 0 };

    dt_strbuf_puts(&line, text);
    add_stopping(j, cause, &line);
    dt_say("%s", dt_strbuf_text(&line));
    say_last_words(j, cause);
    say_giving_up(j, cause, verdict);
    dt_strbuf_free(&line);
    j->final_cause = *cause;
    j->has_final_cause = true;
    j->cause_text = dt_xstrdup(text);
    dt_job_fail(j, dt_exit_of_cause(cause), (uint32_t)j->config->kill_grace_s * 1000);
}

void dt_job_decide(struct dt_job *j)
{
    int cause = dt_job_cause(j);
    enum dt_restart_verdict verdict = dt_restart_verdict(&j->restart);
    struct dt_strbuf text = { 0 };
    struct dt_death death;

    uv_timer_stop(&j->collect);
    if (cause < 0) {
        j->state = j->all_started ? DT_JOB_RUNNING : DT_JOB_STARTING;
        dt_stdinpump_credit(j->in, j->stdin_owed);
        j->stdin_owed = 0;
        dt_job_check(j);
        return;
    }
    death = j->deaths[cause];
    count_alike(j, &death);
    describe(j, &death, &text);
    if (verdict != DT_RESTART_YES) {
        end_with(j, &death, dt_strbuf_text(&text), verdict);
    } else {
        dt_say("%s", dt_strbuf_text(&text));
        say_last_words(j, &death);
        dt_job_recover(j, &death, dt_strbuf_text(&text));
    }
    dt_strbuf_free(&text);
}
